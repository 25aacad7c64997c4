// The SRQ that an XRC request names (IBA 9.7.9.2, o9-114.a5 to a10).
//
// Every request packet names one, as it also says whose PD holds for R_Keys: SENDs take their receive from
// it, WRITEs, READs and atomics only borrow its PD. An SRQ that does not exist counts as one of a foreign
// domain: NAK-Invalid RD Request, class K. All packets of a message must name the SRQ of its first (the
// check of the later ones is optional in o9-114.a6; made here because it costs nothing and keeps a message in
// one PD). An SRQ that goes away during a message ends it in the same way.
#include "engine/transport/rc_responder.h"

namespace uib::transport {

bool RcResponder::find_receive_queue(const net::Packet& packet) {
    const bool strays = open_ != Open::kNone && packet.xrc_srq != xrc_srq_;
    const XrcReceiveQueue* found =
        strays ? nullptr : machine_.host().xrc_receive_queue(packet.xrc_srq, machine_.config().xrc_domain);
    if (found == nullptr) {
        refuse(kForeignSrq);
        return false;
    }
    xrc_srq_ = packet.xrc_srq;
    pd_ = found->pd;
    machine_.receive().draw_from(*found);
    return true;
}

}  // namespace uib::transport
