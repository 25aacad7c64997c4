#include "engine/management/smp_requests.h"

#include <algorithm>
#include <utility>

namespace uib::management {

void SmpRequests::add(net::MadMethod method, const DirectedPath& path, AttributeId attribute,
                      std::uint32_t modifier, const ConstData* data, Done done) {
    Request request;
    request.done = std::move(done);
    net::Smp& smp = request.smp;
    smp.header.management_class = net::kClassSubnDirected;
    smp.header.method = method;
    smp.header.attribute_id = static_cast<std::uint16_t>(attribute);
    smp.header.attribute_modifier = modifier;
    smp.header.transaction_id = next_transaction_++;
    if (data != nullptr) std::copy(data->begin(), data->end(), smp.data.begin());
    const std::size_t hops = std::min(path.size(), net::kSmpPathEntries - 1);
    smp.route.hop_count = static_cast<std::uint8_t>(hops);
    std::copy_n(path.begin(), hops, smp.route.initial_path.begin() + 1);
    waiting_.push_back(std::move(request));
}

void SmpRequests::get(const DirectedPath& path, AttributeId attribute, std::uint32_t modifier, Done done) {
    add(net::MadMethod::kGet, path, attribute, modifier, nullptr, std::move(done));
}

void SmpRequests::set(const DirectedPath& path, AttributeId attribute, std::uint32_t modifier, ConstData data,
                      Done done) {
    add(net::MadMethod::kSet, path, attribute, modifier, &data, std::move(done));
}

void SmpRequests::transmit(Request& request, Time now) {
    ++sent_;
    ++request.attempts;
    request.due = now + options_.timeout;
    // A copy: the answer may come at once and take the request away.
    node_.originate(port_, {request.smp, net::kPermissiveLid, net::kPermissiveLid}, now);
}

void SmpRequests::pump(Time now) {
    if (std::exchange(pumping_, true)) return;
    while (!waiting_.empty() && under_way_.size() < options_.window) {
        const std::uint64_t transaction = waiting_.front().smp.header.transaction_id;
        Request& request = under_way_.emplace(transaction, std::move(waiting_.front())).first->second;
        waiting_.pop_front();
        transmit(request, now);
    }
    pumping_ = false;
}

bool SmpRequests::on_response(const net::Smp& response) {
    const auto found = under_way_.find(response.header.transaction_id);
    if (found == under_way_.end() || found->second.smp.header.attribute_id != response.header.attribute_id)
        return false;
    const Done done = std::move(found->second.done);
    under_way_.erase(found);
    done(&response);
    return true;
}

void SmpRequests::on_timer(Time now) {
    std::vector<std::uint64_t> due;
    for (const auto& [transaction, request] : under_way_)
        if (request.due <= now) due.push_back(transaction);
    for (const std::uint64_t transaction : due) {
        const auto found = under_way_.find(transaction);
        if (found == under_way_.end()) continue;  // an earlier one's answer has cleared the table
        if (found->second.attempts < options_.attempts) {
            transmit(found->second, now);
            continue;
        }
        ++timeouts_;
        const Done done = std::move(found->second.done);
        under_way_.erase(found);
        done(nullptr);
    }
}

Time SmpRequests::next_deadline() const {
    Time at = kNever;
    for (const auto& [transaction, request] : under_way_) at = std::min(at, request.due);
    return at;
}

void SmpRequests::clear() {
    waiting_.clear();
    under_way_.clear();
}

}  // namespace uib::management
