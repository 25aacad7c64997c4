// XDP program for driver af_xdp: frames that are ours (RoCE v2 and v1, native IB frames) go to the engine's
// socket, the rest to the kernel, so that the interface stays the host's: neighbours, TCP and all.
//
// The driver finds the map by its name and puts its socket of each queue there. IPv6 extension headers and
// IPv4 options are not looked behind: RoCE has neither.
#include <linux/bpf.h>

#define SECTION(name) __attribute__((section(name), used))
#define BIG_ENDIAN_16(value) ((unsigned short)((((value)&0xFF) << 8) | ((value) >> 8)))

static void* (*const map_lookup)(void* map, const void* key) = (void*)BPF_FUNC_map_lookup_elem;
static long (*const redirect_map)(void* map, unsigned long key,
                                  unsigned long flags) = (void*)BPF_FUNC_redirect_map;

struct {
    int (*type)[BPF_MAP_TYPE_XSKMAP];
    int (*max_entries)[64];
    unsigned* key;
    unsigned* value;
} xsks_map SECTION(".maps");

enum {
    kEthernet = 14,
    kTag = 4,
    kIpv4 = 20,
    kIpv6 = 40,
    kUdp = 17,
    kPort = 4791,
};

/// The bytes at `at`, of which two may be read.
static __inline __attribute__((always_inline)) int is_two(const unsigned char* at, const unsigned char* end,
                                                          unsigned value) {
    return at + 2 <= end && *(const unsigned short*)at == BIG_ENDIAN_16(value);
}

static __inline __attribute__((always_inline)) int is_ours(const unsigned char* frame,
                                                           const unsigned char* end) {
    const unsigned char* type = frame + kEthernet - 2;
    if (is_two(type, end, 0x8100)) type += kTag;
    if (is_two(type, end, 0x8915) || is_two(type, end, 0x88B5)) return 1;
    const unsigned char* ip = type + 2;
    if (is_two(type, end, 0x0800))
        return ip + kIpv4 <= end && ip[0] == 0x45 && ip[9] == kUdp && is_two(ip + kIpv4 + 2, end, kPort);
    if (is_two(type, end, 0x86DD))
        return ip + kIpv6 <= end && ip[6] == kUdp && is_two(ip + kIpv6 + 2, end, kPort);
    return 0;
}

SECTION("xdp") int uib_xdp(struct xdp_md* context) {
    const unsigned char* frame = (const unsigned char*)(unsigned long)context->data;
    const unsigned char* end = (const unsigned char*)(unsigned long)context->data_end;
    unsigned queue = context->rx_queue_index;
    if (!is_ours(frame, end) || !map_lookup(&xsks_map, &queue)) return XDP_PASS;
    return redirect_map(&xsks_map, queue, XDP_PASS);
}

const char license_of_program[] SECTION("license") = "Dual BSD/GPL";
