// Seeds: random work of all services over bad links, judged by the model.
//
//   UIB_SIMULATION_SEED=n     only this seed, with its whole trace if it fails
//   UIB_SIMULATION_SEEDS=n    so many seeds (default: by the kind of build)
//   UIB_SIMULATION_FIRST=n    from this one on
//   UIB_SIMULATION_SECONDS=n  seeds from one that nobody has tried (or FIRST), for so long
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "tests/simulation/scenario.h"

namespace uib::simulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kDefaultSeeds = 1000;
#elif defined(__OPTIMIZE__)
constexpr std::uint64_t kDefaultSeeds = 12000;
#else
constexpr std::uint64_t kDefaultSeeds = 2000;
#endif
/// Seeds are run in so many tests, so that ctest can run these side by side.
constexpr std::uint64_t kShares = 4;
constexpr std::size_t kShortTrace = 60;

std::optional<std::uint64_t> from_environment(const char* name) {
    const char* text = std::getenv(name);
    if (text == nullptr) return std::nullopt;
    return std::strtoull(text, nullptr, 0);
}

/// Runs a seed; what went wrong, how, and how to see it again.
std::string run_seed(std::uint64_t seed, Totals* totals, std::size_t lines = kShortTrace) {
    Scenario scenario(seed);
    std::string wrong;
    try {  // the machines asked for what is not there, e.g. a request that nobody has posted
        wrong = scenario.run();
    } catch (const std::exception& thrown) {
        wrong = thrown.what();
    }
    if (totals != nullptr) scenario.add_to(*totals);
    if (wrong.empty()) return "";
    return "seed " + std::to_string(seed) + ": " + wrong + '\n' + scenario.trace().text(lines) +
           scenario.describe() +
           "to run it alone, with its whole trace: UIB_SIMULATION_SEED=" + std::to_string(seed) +
           " simulation_test "
           "--gtest_filter='Share*'\n";
}

class Seeds : public ::testing::TestWithParam<std::uint64_t> {};

/// Seeds of this share until the time is up; five failures are enough to start with.
void soak(std::uint64_t share, std::uint64_t seconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(seconds * 1000 / kShares);
    const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
    const std::uint64_t first =
        from_environment("UIB_SIMULATION_FIRST").value_or(since_epoch / std::chrono::microseconds(1)) + share;
    std::uint64_t seed = first;
    for (int failed = 0; Clock::now() < end && failed < 5; seed += kShares) {
        const std::string wrong = run_seed(seed, nullptr);
        EXPECT_TRUE(wrong.empty()) << wrong;
        if (!wrong.empty()) ++failed;
    }
    std::printf("%llu seeds from %llu on, every %llu.\n",
                static_cast<unsigned long long>((seed - first) / kShares),
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(kShares));
}

/// The seeds must reach every corner that the model judges.
void expect_reached(Totals& totals) {
    for (const auto& [what, number] : totals.counts)
        std::printf("%12llu %s\n", static_cast<unsigned long long>(number), what.c_str());
    for (const char* what :
         {"packets resent", "timeouts", "sequence NAKs", "implied NAKs", "RNR NAKs", "duplicate requests",
          "duplicate responses", "datagrams without receive", "QPs in error", "recoveries from SQE",
          "SEND_INV", "BIND", "INVALIDATE", "READ", "ATOMIC_WRITE", "XRC flows", "FETCH_ADD", "COMPARE_SWAP"})
        EXPECT_GT(totals.counts[what], 0U) << what << ": these seeds do not reach it";
}

TEST_P(Seeds, keep_the_promises_of_their_services) {
    if (const auto only = from_environment("UIB_SIMULATION_SEED")) {
        const std::string wrong = GetParam() == 0 ? run_seed(*only, nullptr, ~std::size_t{0}) : "";
        EXPECT_TRUE(wrong.empty()) << wrong;
        return;
    }
    if (const auto seconds = from_environment("UIB_SIMULATION_SECONDS")) {
        soak(GetParam(), *seconds);
        return;
    }
    const std::uint64_t first = from_environment("UIB_SIMULATION_FIRST").value_or(1);
    const std::uint64_t count = from_environment("UIB_SIMULATION_SEEDS").value_or(kDefaultSeeds);
    Totals totals;
    for (std::uint64_t seed = first + GetParam(); seed < first + count; seed += kShares) {
        const std::string wrong = run_seed(seed, &totals);
        ASSERT_TRUE(wrong.empty()) << wrong;
    }
    constexpr std::uint64_t kEnough = 1000;
    if (count >= kEnough) expect_reached(totals);
}

INSTANTIATE_TEST_SUITE_P(Share, Seeds, ::testing::Range(std::uint64_t{0}, kShares));

TEST(Simulation, seeds_that_once_failed) {
    std::ifstream file(UIB_SIMULATION_SEED_FILE);
    ASSERT_TRUE(file.is_open()) << UIB_SIMULATION_SEED_FILE;
    std::string line;
    while (std::getline(file, line)) {
        if (line.empty() || line[0] == '#') continue;
        std::istringstream words(line);
        std::uint64_t seed = 0;
        ASSERT_TRUE(words >> seed) << line;
        const std::string wrong = run_seed(seed, nullptr);
        EXPECT_TRUE(wrong.empty()) << wrong;
    }
}

TEST(Simulation, a_run_is_a_function_of_its_seed) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        Scenario first(seed);
        Scenario second(seed);
        Scenario other(seed + 1000);
        first.run();
        second.run();
        other.run();
        EXPECT_EQ(first.trace().hash(), second.trace().hash()) << "seed " << seed;
        EXPECT_EQ(first.trace().size(), second.trace().size()) << "seed " << seed;
        EXPECT_NE(first.trace().hash(), other.trace().hash()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace uib::simulation
