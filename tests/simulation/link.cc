#include "tests/simulation/link.h"

#include <algorithm>
#include <cstddef>

#include "net/wire/codec.h"

namespace uib::simulation {

Link::Fate Link::fate(Random& random, Time now) {
    for (const LinkFaults::Partition& partition : faults.partitions)
        if (now >= partition.from && now < partition.to) return Fate::kPartitioned;
    if (faults.burst > 0) {
        in_burst_ = in_burst_ ? !random.chance(faults.burst_end) : random.chance(faults.burst);
        if (in_burst_) return Fate::kLost;
    }
    if (faults.loss > 0 && random.chance(faults.loss)) return Fate::kLost;
    if (faults.damage > 0 && random.chance(faults.damage)) return Fate::kDamaged;
    return Fate::kArrives;
}

Time Link::arrival(Random& random, Time now, std::size_t bytes) {
    Time at = now + kFlightTime;
    if (byte_time != 0) {
        constexpr Time kPicoseconds = 1000;
        busy_until_ = std::max(busy_until_, now * kPicoseconds) + bytes * byte_time;
        at += (busy_until_ - now * kPicoseconds) / kPicoseconds;
    }
    if (faults.delay > 0 && random.chance(faults.delay)) at += random.draw(1, faults.longest_delay);
    return at;
}

bool survives_damage(Random& random, const net::Packet& packet) {
    std::vector<std::byte> frame(net::encoded_bytes(packet));
    net::Packet whole = packet;
    whole.bth.pad = static_cast<std::uint8_t>((4 - packet.payload.size() % 4) % 4);
    frame.resize(net::encode(whole, frame));
    const std::vector<std::byte> sound = frame;
    while (frame == sound) {
        const std::uint64_t flips = random.draw(1, 3);
        for (std::uint64_t i = 0; i < flips; ++i)
            frame[random.draw(0, frame.size() - 1)] ^= std::byte{1} << random.draw32(0, 7);
    }
    net::Packet read;
    return net::decode(frame, read) == net::DecodeError::kNone;
}

}  // namespace uib::simulation
