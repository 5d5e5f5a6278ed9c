/*
 * Makes libc calls for a test that cannot make them itself: the library that
 * stands in for /dev/infiniband/umadN replaces libc functions, and Go makes
 * system calls without libc. One request on standard input, one reply on
 * standard output, both in host byte order.
 *
 * With the argument "layout" it prints the kernel header's view of the
 * interface instead.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/types.h>
#include <rdma/ib_user_mad.h>
#include <rdma/rdma_user_ioctl.h>

enum { OPEN = 1, CLOSE, IOCTL, READ, WRITE, POLL, LONG_HEADER };

struct request {
	uint32_t op;
	int32_t fd;
	uint64_t arg;
	uint32_t size; /* of what follows */
	uint32_t zero;
};

struct reply {
	int32_t result, error;
	uint32_t size; /* of what follows */
	uint32_t zero;
};

/* The simulator's library learns the header form from libibumad's own state,
 * which only libibumad's open sets. */
static int long_header(void)
{
	int (*init)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "umad_init");
	int (*open_port)(const char *, int) = (int (*)(const char *, int))dlsym(RTLD_DEFAULT, "umad_open_port");
	int (*close_port)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "umad_close_port");
	int port;

	if (!init || !open_port || !close_port || init() < 0)
		return -1;
	port = open_port(NULL, 0);
	return port < 0 ? port : close_port(port);
}

static void layout(void)
{
#define VALUE(v) printf("%s %#lx\n", #v, (unsigned long)(v))
#define SIZE(t) printf("%s %#lx\n", #t, (unsigned long)sizeof(struct t))
#define FIELD(t, f) printf("%s.%s %#lx\n", #t, #f, (unsigned long)offsetof(struct t, f))
	VALUE(IB_USER_MAD_ABI_VERSION);
	VALUE(IB_USER_MAD_REGISTER_AGENT);
	VALUE(IB_USER_MAD_ENABLE_PKEY);
	VALUE(IB_USER_MAD_REGISTER_AGENT2);
	VALUE(IB_USER_MAD_USER_RMPP);
	SIZE(ib_user_mad_hdr_old);
	SIZE(ib_user_mad_hdr);
	FIELD(ib_user_mad_hdr, id);
	FIELD(ib_user_mad_hdr, status);
	FIELD(ib_user_mad_hdr, timeout_ms);
	FIELD(ib_user_mad_hdr, qpn);
	FIELD(ib_user_mad_hdr, qkey);
	FIELD(ib_user_mad_hdr, lid);
	FIELD(ib_user_mad_hdr, sl);
	FIELD(ib_user_mad_hdr, path_bits);
	FIELD(ib_user_mad_hdr, grh_present);
	FIELD(ib_user_mad_hdr, gid_index);
	FIELD(ib_user_mad_hdr, hop_limit);
	FIELD(ib_user_mad_hdr, traffic_class);
	FIELD(ib_user_mad_hdr, gid);
	FIELD(ib_user_mad_hdr, flow_label);
	FIELD(ib_user_mad_hdr, pkey_index);
	SIZE(ib_user_mad_reg_req);
	FIELD(ib_user_mad_reg_req, id);
	FIELD(ib_user_mad_reg_req, method_mask);
	FIELD(ib_user_mad_reg_req, qpn);
	FIELD(ib_user_mad_reg_req, mgmt_class);
	FIELD(ib_user_mad_reg_req, mgmt_class_version);
	FIELD(ib_user_mad_reg_req, rmpp_version);
	SIZE(ib_user_mad_reg_req2);
	FIELD(ib_user_mad_reg_req2, id);
	FIELD(ib_user_mad_reg_req2, qpn);
	FIELD(ib_user_mad_reg_req2, mgmt_class);
	FIELD(ib_user_mad_reg_req2, mgmt_class_version);
	FIELD(ib_user_mad_reg_req2, flags);
	FIELD(ib_user_mad_reg_req2, method_mask);
	FIELD(ib_user_mad_reg_req2, rmpp_version);
}

static long serve(struct request *q, char *data, uint32_t *size)
{
	struct pollfd p = { .fd = q->fd, .events = POLLIN };
	long result;

	switch (q->op) {
	case OPEN:
		return open(data, (int)q->arg);
	case CLOSE:
		return close(q->fd);
	case IOCTL:
		*size = q->size;
		return ioctl(q->fd, q->arg, q->size ? data : NULL);
	case READ:
		result = read(q->fd, data, q->arg);
		*size = result > 0 ? result : 0;
		return result;
	case WRITE:
		return write(q->fd, data, q->size);
	case POLL:
		return poll(&p, 1, (int)q->arg);
	case LONG_HEADER:
		return long_header();
	}
	errno = ENOSYS;
	return -1;
}

int main(int argc, char **argv)
{
	static char data[65536];
	struct request q;

	if (argc > 1 && !strcmp(argv[1], "layout")) {
		layout();
		return 0;
	}
	while (fread(&q, sizeof q, 1, stdin) == 1) {
		struct reply r = { 0 };

		if (q.size >= sizeof data || q.arg > sizeof data && q.op == READ)
			return 2;
		if (q.size && fread(data, q.size, 1, stdin) != 1)
			return 2;
		data[q.size] = 0;
		errno = 0;
		r.result = serve(&q, data, &r.size);
		/* The library gives some errors as negative results. */
		r.error = r.result == -1 ? errno : r.result < 0 ? -r.result : 0;
		if (fwrite(&r, sizeof r, 1, stdout) != 1 || (r.size && fwrite(data, r.size, 1, stdout) != 1))
			return 2;
		fflush(stdout);
	}
	return 0;
}
