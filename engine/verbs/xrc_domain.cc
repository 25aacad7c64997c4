#include "engine/verbs/xrc_domain.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "engine/verbs/completion_queue.h"
#include "engine/verbs/qp.h"

namespace uib::verbs {

namespace {

constexpr std::uint32_t kSrqNumberMask = 0xFFFFFF;  // as XRCETH has it

}  // namespace

void XrcDomain::add_target(const std::shared_ptr<Qp>& qp) {
    targets_[qp->number()] = qp;
}

std::shared_ptr<Qp> XrcDomain::target(std::uint32_t number) const {
    const auto found = targets_.find(number);
    return found == targets_.end() ? nullptr : found->second.lock();
}

int XrcDomains::open(const Device& device, std::uint32_t flags, bool has_file, ipc::UniqueFd file,
                     std::shared_ptr<XrcDomain>& domain) {
    constexpr std::uint32_t kKnown = O_CREAT | O_EXCL;
    if ((flags & ~kKnown) != 0) return EINVAL;
    if (!has_file) {
        if ((flags & O_CREAT) == 0) return ENOENT;
        domain = std::make_shared<XrcDomain>(++last_domain_, ipc::UniqueFd());
        return 0;
    }
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0) return EBADF;
    std::erase_if(named_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<XrcDomain>& place = named_[{&device, status.st_dev, status.st_ino}];
    domain = place.lock();
    if (domain != nullptr) return (flags & O_EXCL) != 0 ? EEXIST : 0;
    if ((flags & O_CREAT) == 0) return ENOENT;
    domain = std::make_shared<XrcDomain>(++last_domain_, std::move(file));
    place = domain;
    return 0;
}

std::uint32_t XrcDomains::take_srq_number() {
    if (numbers_.size() >= kSrqNumberMask) return 0;
    // A number rests as long as possible before it is used again, so that a late packet finds nobody.
    do {
        last_number_ = (last_number_ + 1) & kSrqNumberMask;
    } while (last_number_ == 0 || numbers_.contains(last_number_));
    numbers_.insert(last_number_);
    return last_number_;
}

void XrcDomains::add_srq(SharedReceiveQueue& srq, std::uint32_t domain) {
    transport::XrcReceiveQueue view;
    view.queue = &srq;
    view.pd = srq.pd->id;
    view.client = srq.slots().client().id();
    view.number = srq.number();
    srqs_[srq.number()] = {&srq, domain, view};
}

SharedReceiveQueue* XrcDomains::srq(std::uint32_t number) const {
    const auto found = srqs_.find(number);
    return found == srqs_.end() ? nullptr : found->second.srq;
}

const transport::XrcReceiveQueue* XrcDomains::receive_queue(std::uint32_t number,
                                                            std::uint32_t domain) const {
    const auto found = srqs_.find(number);
    return found == srqs_.end() || found->second.domain != domain ? nullptr : &found->second.view;
}

XrcBinding::XrcBinding(XrcDomains& domains, XrcdObject& xrcd, CompletionQueue& cq, SharedReceiveQueue& srq)
    : domains_(domains), xrcd_(xrcd), cq_(cq), number_(srq.number()) {
    ++xrcd_.uses;
    ++cq_.uses;
    domains_.add_srq(srq, xrcd.domain->id());
}

XrcBinding::~XrcBinding() {
    domains_.remove_srq(number_);
    --cq_.uses;
    --xrcd_.uses;
}

}  // namespace uib::verbs
