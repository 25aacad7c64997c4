// Random work of one queue pair towards its peer (or, for datagrams, its peers), and an account of what must
// come of it that knows only what a client may rely on:
//
//   reliable    each message once, in order, whole; WRITEs are in memory before a later message is received
//   and
//               before the requester's completion; a READ brings what earlier work of the flow left there
//   unreliable  a message whole or not at all, none invented; in order if the path keeps order. Of a WRITE
//   that
//               did not end, whole packets from its start may be in memory
//   all         each request completes once, in order, with the right status; after the first error only
//   flushes
//
// Judged at each completion as it is made; finish() looks at what is left in the end and writes what memory
// must hold into two images.
//
// Files: flow_post.cc posts legal work; flow_illegal.cc spoils it; flow_windows.cc memory windows;
// flow_judge.cc judges completions; flow_finish.cc the end.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "tests/simulation/image.h"
#include "tests/simulation/message.h"
#include "tests/simulation/words.h"
#include "tests/simulation/world.h"

namespace uib::simulation {

class Flow {
  public:
    /// `to` is the peer of a connected queue pair, else nullptr.
    Flow(World& world, Qp& from, Qp* to, FlowPlan plan, Words& words)
        : world_(world), from_(from), to_(to), plan_(std::move(plan)), words_(words) {}

    void post(std::uint64_t count);
    void on_sent(const transport::Completion& completion);
    void on_received(Qp& at, ReceiveList& list, const transport::Completion& completion);
    /// Datagrams: true if one of this flow's messages for `at` is what lies in the buffer.
    bool claims_datagram(Qp& at, const transport::Completion& completion);
    void finish(Images& images);
    /// The send queue error state was left: what is posted from now on works again.
    void recover();

    /// The flow in the other direction of a connection.
    Flow* reverse = nullptr;
    Qp& from() { return from_; }
    Qp* to() { return to_; }
    [[nodiscard]] const FlowPlan& plan() const { return plan_; }
    [[nodiscard]] const Message& message(std::size_t index) const { return messages_[index]; }
    [[nodiscard]] std::size_t size() const { return messages_.size(); }
    /// Atomics: it was certainly, perhaps or never executed.
    enum class Fate { kDone, kPerhaps, kNever };
    [[nodiscard]] Fate fate(std::size_t index) const;
    void add_window();

  private:
    enum class WindowState : std::uint8_t { kFree, kBinding, kBound, kInvalidating };
    /// A window of `from`'s memory for the use of the reverse flow.
    struct WindowUse {
        std::uint32_t handle = 0;
        std::uint32_t key = 0;
        std::uint64_t at = 0;
        std::uint32_t length = 0;
        std::uint32_t used = 0;    ///< bytes given to requests
        std::size_t request = 0;   ///< bind or invalidate under way
        std::size_t last_use = 0;  ///< number of the reverse flow's newest request that uses it, + 1
        WindowState state = WindowState::kFree;
    };

    // flow_post.cc
    void post_one();
    bool choose(Message& message);
    bool illegal_due() const { return messages_.size() >= plan_.illegal_at && illegal_ == ~std::size_t{0}; }
    void plan_payload(Message& message, transport::SendRequest& request);
    void plan_target(Message& message, transport::SendRequest& request);
    void plan_read(Message& message, transport::SendRequest& request);
    void plan_atomic(Message& message, transport::SendRequest& request);
    void plan_atomic_write(Message& message, transport::SendRequest& request);
    void plan_datagram(Message& message, transport::SendRequest& request);
    void commit(Message&& message, SendList::Entry&& entry);
    void post_receives(const Message& message);
    void post_receive(ReceiveList& list, Adapter& adapter, std::uint32_t length);
    std::uint32_t draw_length();

    // flow_illegal.cc
    Illegal choose_illegal(const Message& message);
    void spoil(Message& message, SendList::Entry& entry);
    static bool expected(Illegal what, transport::Status status);

    // flow_windows.cc
    bool plan_window_work(Message& message, transport::SendRequest& request);
    void plan_bind(transport::SendRequest& request);
    bool use_window(Message& message, transport::SendRequest& request);
    bool plan_invalidating_send(Message& message, transport::SendRequest& request);
    void window_work_done(std::size_t index);

    // flow_judge.cc
    void confirm_until(std::size_t end);
    void confirm(std::size_t index);
    void judge_error(std::size_t index, transport::Status status);
    void judge_receive_error(Qp& at, const transport::Completion& completion);
    bool fits(const Message& message, const Qp& at, const ReceiveList::Buffer& buffer,
              const transport::Completion& completion) const;
    void match_reliable(Qp& at, ReceiveList& list, const transport::Completion& completion);
    void match_unreliable(Qp& at, ReceiveList& list, const transport::Completion& completion);
    void verify_writes(std::size_t end);
    bool in_memory(const Message& message) const;
    void wrong(const std::string& what, std::size_t index);

    // flow_finish.cc
    void finish_sends();
    void settle_local(std::size_t index, Image& image);
    void settle_remote(std::size_t index, Image& image);
    void settle_arrivals(const Message& message, Images& images);
    bool partly(const Adapter& adapter, const Pieces& pieces, const Message& message) const;

    World& world_;
    Qp& from_;
    Qp* to_;
    FlowPlan plan_;
    Words& words_;
    std::deque<Message> messages_;
    std::size_t next_done_ = 0;     ///< messages below it have completed
    std::size_t next_receive_ = 0;  ///< messages below it that take a receive have arrived
    std::size_t verified_ = 0;      ///< WRITEs below it were seen in memory
    std::size_t illegal_ = ~std::size_t{0};
    bool broken_ = false;   ///< something has completed in error
    bool refused_ = false;  ///< a receive of this flow has ended in error
    std::optional<std::size_t> last_read_;
    std::optional<std::size_t> last_write_;
    Piece shared_area_;
    std::optional<std::uint64_t> word_;
    std::deque<WindowUse> windows_;
};

}  // namespace uib::simulation
