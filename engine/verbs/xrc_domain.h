// XRC domains (IBA 9.7.9.2, 11.2.3): what the target QPs and the XRC SRQs of several processes have in
// common.
//
// XrcDomains is the adapter's registry, one for all devices. A domain is named by the device and the inode of
// the file that it was opened with, or has no name and belongs to whoever opened it. Contexts share its
// ownership: XrcdObject is one opener's handle, and the domain goes with the last of them. An SRQ of a domain
// is found by its number, which no other SRQ of the adapter has; a target QP by its QP number, for
// ibv_open_qp. Neither is owned here: an SRQ belongs to its context, a target QP to those that hold it
// (QpHandle in context.h). Used with the lane's baton held.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "engine/ipc/unique_fd.h"
#include "engine/transport/host.h"

namespace uib::verbs {

class Client;
class CompletionQueue;
class Device;
class Qp;
class SharedReceiveQueue;

class XrcDomain {
  public:
    /// `file` keeps the inode, and with it the name, from being reused; none if the domain has no name.
    XrcDomain(std::uint32_t id, ipc::UniqueFd file) : id_(id), file_(std::move(file)) {}

    /// What target QPs are configured with; never 0.
    [[nodiscard]] std::uint32_t id() const { return id_; }

    void add_target(const std::shared_ptr<Qp>& qp);
    void remove_target(std::uint32_t number) { targets_.erase(number); }
    /// Nullptr if no target QP of the domain has the number.
    [[nodiscard]] std::shared_ptr<Qp> target(std::uint32_t number) const;

  private:
    std::uint32_t id_;
    ipc::UniqueFd file_;
    std::unordered_map<std::uint32_t, std::weak_ptr<Qp>> targets_;
};

/// One opener's handle of a domain.
struct XrcdObject {
    Client* owner = nullptr;
    std::shared_ptr<XrcDomain> domain;
    std::uint32_t uses = 0;  ///< SRQs and target QPs made or opened through it; it cannot go before they do
};

class XrcDomains {
  public:
    /// Opens the domain that `file` names on `device`, or a new one without a name if there is no file.
    /// `flags` as open(2): see ipc::OpenXrcdRequest. 0, EBADF, ENOENT, EEXIST or EINVAL.
    int open(const Device& device, std::uint32_t flags, bool has_file, ipc::UniqueFd file,
             std::shared_ptr<XrcDomain>& domain);

    /// A number for a new SRQ of any kind, 1 to 2^24 - 1; 0 when there is none left.
    std::uint32_t take_srq_number();
    void free_srq_number(std::uint32_t number) { numbers_.erase(number); }

    void add_srq(SharedReceiveQueue& srq, std::uint32_t domain);
    void remove_srq(std::uint32_t number) { srqs_.erase(number); }
    /// Nullptr if no XRC SRQ has the number.
    [[nodiscard]] SharedReceiveQueue* srq(std::uint32_t number) const;
    /// Host::xrc_receive_queue.
    [[nodiscard]] const transport::XrcReceiveQueue* receive_queue(std::uint32_t number,
                                                                  std::uint32_t domain) const;

  private:
    using Name = std::tuple<const Device*, dev_t, ino_t>;  ///< device, file system, inode
    struct Entry {
        SharedReceiveQueue* srq;
        std::uint32_t domain;
        transport::XrcReceiveQueue view;
    };

    std::map<Name, std::weak_ptr<XrcDomain>> named_;
    std::unordered_map<std::uint32_t, Entry> srqs_;
    std::unordered_set<std::uint32_t> numbers_;
    std::uint32_t last_domain_ = 0;
    std::uint32_t last_number_ = 0;
};

/// What makes an SRQ an XRC SRQ: its domain, the CQ of its receives and its place in the registry, for as
/// long as this lives.
class XrcBinding {
  public:
    XrcBinding(XrcDomains& domains, XrcdObject& xrcd, CompletionQueue& cq, SharedReceiveQueue& srq);
    ~XrcBinding();
    XrcBinding(const XrcBinding&) = delete;
    XrcBinding& operator=(const XrcBinding&) = delete;

    [[nodiscard]] CompletionQueue& cq() const { return cq_; }

  private:
    XrcDomains& domains_;
    XrcdObject& xrcd_;
    CompletionQueue& cq_;
    std::uint32_t number_;
};

}  // namespace uib::verbs
