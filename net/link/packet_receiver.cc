#include "net/link/packet_receiver.h"

namespace uib::net::link {

Received PacketReceiver::on(Element element) {
    switch (state_) {
        case State::kIdle:
            return on_idle(element);
        case State::kData:
            return on_data(element);
        case State::kLink:
            return on_link(element);
        case State::kSkip:
            break;
    }
    if (element == Element::kBytes || element == Element::kError) return Received::kNothing;
    state_ = State::kIdle;
    const bool starts = element == Element::kStartData || element == Element::kStartLink;
    return starts ? on_idle(element) : Received::kNothing;
}

Received PacketReceiver::on_idle(Element element) {
    switch (element) {
        case Element::kIdle:
            return Received::kNothing;
        case Element::kStartData:
            state_ = State::kData;
            return Received::kNothing;
        case Element::kStartLink:
            state_ = State::kLink;
            return Received::kNothing;
        default:
            return bad(element, Received::kBadPacketDiscard);
    }
}

Received PacketReceiver::on_data(Element element) {
    switch (element) {
        case Element::kBytes:
            return Received::kNothing;
        case Element::kEndGood:
            state_ = State::kIdle;
            return Received::kDataPacket;
        case Element::kEndBad:
            state_ = State::kIdle;
            return Received::kMarkedBadPacket;
        default:
            return bad(element, Received::kBadPacket);
    }
}

Received PacketReceiver::on_link(Element element) {
    switch (element) {
        case Element::kBytes:
            return Received::kNothing;
        case Element::kEndGood:
            state_ = State::kIdle;
            return Received::kLinkPacket;
        default:
            return bad(element, Received::kBadPacketDiscard);
    }
}

Received PacketReceiver::bad(Element element, Received what) {
    const bool ended =
        element == Element::kIdle || element == Element::kEndGood || element == Element::kEndBad;
    state_ = ended ? State::kIdle : State::kSkip;
    return what;
}

Received PacketReceiver::on(const Frame& frame) {
    Received told = Received::kNothing;
    const auto take = [&](Element element) {
        const Received what = on(element);
        if (told == Received::kNothing) told = what;
    };
    if (frame.start != FrameStart::kNone)
        take(frame.start == FrameStart::kData ? Element::kStartData : Element::kStartLink);
    if (!frame.bytes.empty()) take(Element::kBytes);
    if (frame.code_error) take(Element::kError);
    if (frame.end != FrameEnd::kNone)
        take(frame.end == FrameEnd::kGood ? Element::kEndGood : Element::kEndBad);
    take(Element::kIdle);  // between frames
    return told;
}

}  // namespace uib::net::link
