#include "engine/ipc/usable_cpus.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace uib::ipc {
namespace {

TEST(UsableCpus, QuotaIsRoundedUpToWholeCpus) {
    EXPECT_EQ(cpus_of_quota("150000 100000"), 2U);
    EXPECT_EQ(cpus_of_quota("200000 100000"), 2U);
    EXPECT_EQ(cpus_of_quota("1000 100000"), 1U);
}

TEST(UsableCpus, NoQuotaIsNoLimit) {
    EXPECT_EQ(cpus_of_quota("max 100000"), 0U);
    EXPECT_EQ(cpus_of_quota(""), 0U);
}

TEST(UsableCpus, AffinityCounts) {
    cpu_set_t before;
    ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    int first = 0;
    while (!CPU_ISSET(first, &before)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(usable_cpus(), 1U);
    ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(UsableCpus, WhereThreeSpinnersDoNotFitTheyYieldAtOnce) {
    EXPECT_EQ(polls_before_yield(1), 1U);
    EXPECT_EQ(polls_before_yield(2), 1U);
    EXPECT_EQ(polls_before_yield(8), 0U);
}

}  // namespace
}  // namespace uib::ipc
