#include "net/encap/ingress_drop.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "net/encap/roce_frame.h"
#include "net/wire/gid.h"

namespace uib::net {
namespace {

// Of kernels newer than Debian 12's headers.
constexpr std::uint32_t kTcxIngress = 46;  // enum bpf_attach_type
constexpr std::int32_t kDrop = 2;          // enum tcx_action_base
constexpr std::int32_t kGoOn = -1;

/// Ten instructions each, and jumps reach 32767; what is for others goes through the stack, as without the
/// program.
constexpr std::size_t kMaxAddresses = 256;

constexpr std::int16_t kHeader = -48;  // from the frame pointer: the IP header and the start of UDP's
constexpr std::int32_t kHeaderOffset = ETH_HLEN;

/// A program under construction; jumps that leave it are patched at its end.
class Program {
  public:
    explicit Program(std::span<const Gid> own) {
        put(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0);
        pass_unless_equal(offsetof(__sk_buff, pkt_type), PACKET_HOST);
        pass_unless_equal(offsetof(__sk_buff, vlan_present), 0);
        put(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_7, BPF_REG_6, offsetof(__sk_buff, protocol), 0);
        const std::size_t is_ipv4 = put(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 0, htons(ETH_P_IP));
        pass_if(BPF_JNE, BPF_REG_7, htons(ETH_P_IPV6));
        put_ipv6(own);
        code_[is_ipv4].off = static_cast<std::int16_t>(code_.size() - is_ipv4 - 1);
        put_ipv4(own);
        finish();
    }

    [[nodiscard]] const std::vector<bpf_insn>& code() const { return code_; }

  private:
    std::size_t put(unsigned code, unsigned to, unsigned from, std::size_t offset, std::int32_t value) {
        bpf_insn insn{};
        insn.code = static_cast<std::uint8_t>(code);
        insn.dst_reg = static_cast<std::uint8_t>(to & 0xF);
        insn.src_reg = static_cast<std::uint8_t>(from & 0xF);
        insn.off = static_cast<std::int16_t>(offset);
        insn.imm = value;
        code_.push_back(insn);
        return code_.size() - 1;
    }
    /// The frame goes on to the stack if `condition` holds between a register's lower half and a value.
    void pass_if(unsigned condition, unsigned reg, std::int32_t value) {
        to_pass_.push_back(put(BPF_JMP32 | condition | BPF_K, reg, 0, 0, value));
    }
    void pass_unless_equal(std::size_t context_field, std::int32_t value) {
        put(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_7, BPF_REG_6, context_field, 0);
        pass_if(BPF_JNE, BPF_REG_7, value);
    }
    void load_header(std::int32_t bytes) {
        put(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_1, BPF_REG_6, 0, 0);
        put(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, kHeaderOffset);
        put(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_10, 0, 0);
        put(BPF_ALU64 | BPF_ADD, BPF_REG_3, 0, 0, kHeader);  // BPF_K is 0, as BPF_ADD is
        put(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, bytes);
        put(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_skb_load_bytes);
        pass_if(BPF_JNE, BPF_REG_0, 0);
    }
    void load(unsigned size, unsigned reg, std::size_t at) {
        put(BPF_LDX | BPF_MEM | size, reg, BPF_REG_10, static_cast<std::size_t>(kHeader) + at, 0);
    }
    void put_ipv4(std::span<const Gid> own) {
        constexpr std::size_t kFragment = 6, kProtocol = 9, kDestination = 16, kPort = 22;
        load_header(kPort + 2);
        load(BPF_B, BPF_REG_7, 0);
        pass_if(BPF_JNE, BPF_REG_7, 0x45);  // no options
        load(BPF_B, BPF_REG_7, kProtocol);
        pass_if(BPF_JNE, BPF_REG_7, IPPROTO_UDP);
        load(BPF_H, BPF_REG_7, kFragment);
        pass_if(BPF_JSET, BPF_REG_7, htons(0x3FFF));
        load(BPF_H, BPF_REG_7, kPort);
        pass_if(BPF_JNE, BPF_REG_7, htons(kRoceUdpPort));
        for (const Gid& gid : own)
            if (is_ipv4(gid)) put_match(std::span(gid).subspan(kIpv4InGid), kDestination);
        to_pass_.push_back(put(BPF_JMP | BPF_JA, 0, 0, 0, 0));
    }
    void put_ipv6(std::span<const Gid> own) {
        constexpr std::size_t kNextHeader = 6, kDestination = 24, kPort = 42;
        load_header(kPort + 2);
        load(BPF_B, BPF_REG_7, kNextHeader);
        pass_if(BPF_JNE, BPF_REG_7, IPPROTO_UDP);
        load(BPF_H, BPF_REG_7, kPort);
        pass_if(BPF_JNE, BPF_REG_7, htons(kRoceUdpPort));
        for (const Gid& gid : own)
            if (!is_ipv4(gid) && gid != Gid{}) put_match(gid, kDestination);
        to_pass_.push_back(put(BPF_JMP | BPF_JA, 0, 0, 0, 0));
    }
    /// Drops the frame if all words of the address are there.
    void put_match(std::span<const std::uint8_t> address, std::size_t at) {
        std::vector<std::size_t> to_next;
        for (std::size_t i = 0; i < address.size(); i += 4) {
            std::int32_t word = 0;
            std::memcpy(&word, address.data() + i, sizeof word);
            load(BPF_W, BPF_REG_7, at + i);
            to_next.push_back(put(BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_7, 0, 0, word));
        }
        put_verdict(kDrop);
        for (const std::size_t jump : to_next) lead_here(jump);
    }
    void put_verdict(std::int32_t verdict) {
        put(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, verdict);
        put(BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
    }
    void lead_here(std::size_t jump) { code_[jump].off = static_cast<std::int16_t>(code_.size() - jump - 1); }
    void finish() {
        for (const std::size_t jump : to_pass_) lead_here(jump);
        put_verdict(kGoOn);
    }

    std::vector<bpf_insn> code_;
    std::vector<std::size_t> to_pass_;
};

int bpf(bpf_cmd command, bpf_attr& attributes) {
    return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

}  // namespace

bool IngressDrop::cover(int interface_index, std::span<const Gid> own) {
    link_.reset();
    error_ = attach(interface_index, own);
    return error_ == 0;
}

int IngressDrop::attach(int interface_index, std::span<const Gid> own) {
    if (interface_index == 0) return ENODEV;
    const Program program(own.first(std::min(own.size(), kMaxAddresses)));
    bpf_attr load{};
    load.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    load.expected_attach_type = kTcxIngress;
    load.insns = reinterpret_cast<std::uint64_t>(program.code().data());
    load.insn_cnt = static_cast<std::uint32_t>(program.code().size());
    load.license = reinterpret_cast<std::uint64_t>("");  // uses nothing that asks for one
    const ipc::UniqueFd loaded(bpf(BPF_PROG_LOAD, load));
    if (!loaded) return errno;
    bpf_attr attach{};
    attach.link_create.prog_fd = static_cast<std::uint32_t>(loaded.get());
    attach.link_create.target_ifindex = static_cast<std::uint32_t>(interface_index);
    attach.link_create.attach_type = kTcxIngress;
    link_.reset(bpf(BPF_LINK_CREATE, attach));
    return link_ ? 0 : errno;
}

}  // namespace uib::net
