// Two clients of one adapter and the XRC objects that they share.
#pragma once

#include <fcntl.h>
#include <stdlib.h>

#include "tests/unit/verbs/adapter_fixture.h"

namespace uib::verbs {

/// A file in the temporary directory, removed at once: its descriptor keeps the inode.
inline ipc::UniqueFd temporary_file() {
    char path[] = "/tmp/uib-xrc-XXXXXX";
    ipc::UniqueFd file(::mkstemp(path));
    ::unlink(path);
    return file;
}

/// Another process with a context of its own.
struct Neighbour {
    Neighbour(Adapter& the_adapter, Device& device, std::uint32_t id)
        : adapter(the_adapter), context(the_adapter, device, id) {
        EXPECT_EQ(::pipe2(pipe, O_CLOEXEC | O_NONBLOCK), 0);
        client =
            std::make_unique<Client>(id, ::getpid(), memory::MappedSpace::Credentials{::getuid(), ::getgid()},
                                     ipc::UniqueFd(::dup(pipe[1])));
        EXPECT_EQ(client->start(), 0);
        adapter.add_client(*client);
    }
    ~Neighbour() {
        leave();
        ::close(pipe[0]);
        ::close(pipe[1]);
    }
    void leave() {
        if (client == nullptr) return;
        context.remove_client(*client);
        adapter.remove_client(*client);
        client.reset();
    }

    Adapter& adapter;
    int pipe[2] = {-1, -1};
    std::unique_ptr<Client> client;
    Context context;
};

inline int open_domain(Context& context, Client& client, int file, std::uint32_t flags,
                       std::uint32_t& handle) {
    const ipc::OpenXrcdRequest request{flags, file >= 0};
    return context.open_xrcd(client, request, ipc::UniqueFd(file >= 0 ? ::dup(file) : -1), handle);
}

class XrcTest : public AdapterTest {
  protected:
    int open_here(int file, std::uint32_t flags, std::uint32_t& handle) {
        return open_domain(*context_, *client_, file, flags, handle);
    }
    static int make_target(Context& context, Client& client, std::uint32_t xrcd, std::uint64_t user_handle,
                           ipc::QpReply& reply) {
        ipc::CreateQpRequest request{};
        request.service = static_cast<std::uint32_t>(ipc::Service::kXrcReceive);
        request.xrcd = xrcd + 1;
        request.user_handle = user_handle;
        return context.create_qp(client, request, reply);
    }
    static int make_srq(Context& context, Client& client, std::uint32_t pd, std::uint32_t xrcd,
                        std::uint32_t cq, ipc::SrqReply& reply) {
        ipc::CreateSrqRequest request{};
        request.user_handle = 0x5A;
        request.pd = pd;
        request.max_wr = 16;
        request.max_sge = 1;
        request.kind = static_cast<std::uint32_t>(ipc::SrqKind::kXrc);
        request.xrcd = xrcd + 1;
        request.cq = cq + 1;
        return context.create_srq(client, request, reply);
    }
    static int to_init(Context& context, std::uint32_t handle) {
        ipc::ModifyQpRequest request{};
        request.handle = handle;
        request.mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        request.attributes.state = IBV_QPS_INIT;
        request.attributes.port = 1;
        return context.modify_qp(request);
    }
};

}  // namespace uib::verbs
