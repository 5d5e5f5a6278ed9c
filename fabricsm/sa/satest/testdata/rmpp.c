/*
 * Does what the kernel does for programs of libibumad, where libumad2sim, the
 * library that stands in for /dev/infiniband/umadN on ibsim, does not:
 *
 * - RMPP. Whole messages are written and read; here they become segments, with
 *   windows and acknowledgements, and segments become messages. libumad2sim sends
 *   the first 256 bytes and forgets the others.
 * - The last 32 bytes of what is received, which libumad2sim loses.
 * - Requests that nobody answers come back after their timeout, when they were sent
 *   as often as they may be.
 *
 * Only subnet administration, class 0x03, is looked at. This file is compiled twice:
 * with -DBEHIND into a library that is preloaded behind libumad2sim and sees its
 * datagrams, and without into one that is preloaded before it and sees what the
 * program writes and reads. There is no loss on ibsim, so nothing is sent twice but
 * requests.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	MAD_SIZE = 256, SA_CLASS = 3,
	FRAME = 288, FRAME_MAD = 32, /* a datagram of ibsim */
	CUT = 224, REST = MAD_SIZE - CUT, /* where libumad2sim cuts */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#ifdef BEHIND

/* What was received and not yet asked for, the oldest overwritten. */
enum { KEPT = 1024 };
static uint8_t kept[KEPT][MAD_SIZE];
static unsigned next_kept;

ssize_t read(int fd, void *buf, size_t count)
{
	static ssize_t (*next)(int, void *, size_t);
	const uint8_t *mad = (uint8_t *)buf + FRAME_MAD;
	ssize_t n;

	if (!next)
		next = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	n = next(fd, buf, count);
	if (n == FRAME && count == FRAME && mad[1] == SA_CLASS) {
		pthread_mutex_lock(&lock);
		memcpy(kept[next_kept++ % KEPT], mad, MAD_SIZE);
		pthread_mutex_unlock(&lock);
	}
	return n;
}

/* Gives a MAD back what it had behind the cut. */
void salab_mend(uint8_t *mad)
{
	unsigned i;

	pthread_mutex_lock(&lock);
	for (i = 0; i < KEPT; i++) {
		uint8_t *k = kept[(next_kept + i) % KEPT]; /* the oldest first */

		if (k[1] == SA_CLASS && !memcmp(k, mad, CUT)) {
			memcpy(mad + CUT, k + CUT, REST);
			k[1] = 0;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
}

#else

enum {
	SA_HEADER = 56, SA_DATA = 200, SEGMENT = 220, /* SEGMENT: what PayloadLength counts of one */
	DATA = 1, ACK = 2, ACTIVE = 1, FIRST = 2, LAST = 4, RESPONSE = 0x80,
	WINDOW = 16,
	MAX_HEADER = 64, /* of libibumad before each MAD */
	MESSAGE_MOST = 1 << 30, PATIENCE = 5000, /* ms, between segments */
	SESSIONS = 64, REQUESTS = 4096, TIMED_OUT = 110,
};

static ssize_t (*next_write)(int, const void *, size_t);
static ssize_t (*next_read)(int, void *, size_t);
static int (*next_poll)(struct pollfd *, nfds_t, int);
static size_t (*umad_header)(void);
static size_t header; /* before each MAD: longer once libibumad has opened a port */
static void (*mend)(uint8_t *);

static void find(void)
{
	next_write = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
	next_read = (ssize_t(*)(int, void *, size_t))dlsym(RTLD_NEXT, "read");
	next_poll = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
	mend = (void (*)(uint8_t *))dlsym(RTLD_DEFAULT, "salab_mend");
	umad_header = (size_t(*)(void))dlsym(RTLD_DEFAULT, "umad_size");
}

static void need(void)
{
	if (!next_write)
		find();
}

/* libumad2sim's descriptors of umad devices. */
static int is_umad(int fd)
{
	need();
	if (fd < 1024 || fd >= 2048)
		return 0;
	if (!umad_header)
		find(); /* libibumad was not there yet */
	header = umad_header ? umad_header() : 0;
	return header > 0;
}

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return be32toh(v);
}

static void put32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
}

static int64_t now(void) /* ms */
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * (int64_t)1000 + t.tv_nsec / 1000000;
}

/* A message under way: one of ours while it is sent, or another's while it comes. */
struct session {
	int used, fd;
	uint8_t head[MAX_HEADER + SA_HEADER]; /* of the first segment */
	uint8_t *data;
	size_t size, room; /* of data */
	uint32_t segments, done; /* all, and sent or received */
	uint32_t window; /* last segment that may be sent or come before an ACK */
};

static struct session sent[SESSIONS], coming[SESSIONS];
static unsigned next_sent, next_coming;

/* A message is known by transaction and method, and the LID of the other side. */
static struct session *of(struct session *list, const uint8_t *umad, uint8_t method)
{
	const uint8_t *mad = umad + header;
	int i;

	for (i = 0; i < SESSIONS; i++) {
		const uint8_t *h = list[i].head;

		if (list[i].used && h[header + 3] == method && !memcmp(h + header + 8, mad + 8, 8) &&
		    !memcmp(h + 28, umad + 28, 2))
			return &list[i];
	}
	return NULL;
}

static void end(struct session *s)
{
	free(s->data);
	memset(s, 0, sizeof *s);
}

static struct session *start(struct session *list, unsigned *next, int fd, const uint8_t *umad)
{
	struct session *s = &list[(*next)++ % SESSIONS]; /* the oldest makes room */

	end(s);
	s->used = 1;
	s->fd = fd;
	memcpy(s->head, umad, header + SA_HEADER);
	return s;
}

/* Sends what the window admits. */
static int go_on(struct session *s)
{
	uint8_t umad[MAX_HEADER + MAD_SIZE], *mad = umad + header;

	while (s->done < s->segments && s->done < s->window) {
		size_t from = (size_t)s->done * SA_DATA, n = s->size - from;
		uint32_t length = 0;

		if (n > SA_DATA)
			n = SA_DATA;
		memset(umad, 0, sizeof umad);
		memcpy(umad, s->head, header + SA_HEADER);
		if (n)
			memcpy(mad + SA_HEADER, s->data + from, n);
		s->done++;
		mad[24] = 1;
		mad[25] = DATA;
		mad[26] = 0xf8 | ACTIVE;
		mad[27] = 0;
		if (s->done == 1) {
			mad[26] |= FIRST;
			length = s->size + s->segments * (SEGMENT - SA_DATA);
		}
		if (s->done == s->segments) {
			mad[26] |= LAST;
			length = n + SEGMENT - SA_DATA;
		}
		put32(mad + 28, s->done);
		put32(mad + 32, length);
		if (next_write(s->fd, umad, header + MAD_SIZE) < 0)
			return -1;
	}
	return 0;
}

/* Requests out, so that silence is told. */
static struct request {
	int fd, timeout, retries;
	int64_t due;
	uint8_t umad[MAX_HEADER + MAD_SIZE];
} requests[REQUESTS];
static unsigned most_requests;

static void expect(int fd, const uint8_t *umad)
{
	uint32_t timeout, retries;
	unsigned i;

	memcpy(&timeout, umad + 8, 4);
	memcpy(&retries, umad + 12, 4);
	if (!timeout || umad[header + 3] & RESPONSE)
		return;
	for (i = 0; i < REQUESTS && requests[i].fd; i++)
		;
	if (i == REQUESTS)
		return;
	if (i >= most_requests)
		most_requests = i + 1;
	requests[i].fd = fd;
	requests[i].timeout = timeout;
	requests[i].retries = retries;
	requests[i].due = now() + timeout;
	memcpy(requests[i].umad, umad, header + MAD_SIZE);
}

/* The request with the lower half of a transaction is answered: 0 when nobody asked,
 * as when another program had this client's place before. */
static int answered(const uint8_t *mad)
{
	unsigned i;

	for (i = 0; i < most_requests; i++)
		if (requests[i].fd && !memcmp(requests[i].umad + header + 12, mad + 12, 4)) {
			requests[i].fd = 0;
			return 1;
		}
	return 0;
}

/* A request of this descriptor that is late for the last time; others are sent again. */
static struct request *late(int fd, int64_t *soonest)
{
	unsigned i;

	*soonest = INT64_MAX;
	for (i = 0; i < most_requests; i++) {
		struct request *r = &requests[i];

		if (r->fd != fd)
			continue;
		if (r->due <= now()) {
			if (!r->retries)
				return r;
			r->retries--;
			r->due = now() + r->timeout;
			next_write(fd, r->umad, header + MAD_SIZE);
		}
		if (r->due < *soonest)
			*soonest = r->due;
	}
	return NULL;
}

ssize_t write(int fd, const void *buf, size_t count)
{
	const uint8_t *umad = buf;
	struct session *s;
	int failed;

	if (!is_umad(fd) || count < header + SA_HEADER || umad[header + 1] != SA_CLASS)
		return need(), next_write(fd, buf, count);
	pthread_mutex_lock(&lock);
	if (!(umad[header + 26] & ACTIVE)) {
		expect(fd, umad);
		pthread_mutex_unlock(&lock);
		return next_write(fd, buf, count);
	}
	s = start(sent, &next_sent, fd, umad);
	s->size = count - header - SA_HEADER;
	s->segments = s->size ? (s->size + SA_DATA - 1) / SA_DATA : 1;
	s->window = 1;
	s->data = malloc(s->size + 1);
	memcpy(s->data, umad + header + SA_HEADER, s->size);
	failed = go_on(s);
	pthread_mutex_unlock(&lock);
	return failed ? -1 : (ssize_t)count;
}

/* An acknowledgement of a whole answer was sent, and may be on its way still. */
static int acknowledged;
static uint8_t acknowledgement[MAX_HEADER + MAD_SIZE];
static pthread_t reader; /* who receives */
enum { BEHIND_ALL = 0x5e771e }; /* transaction of the question behind it: see settle */

/* What was put together and did not fit into the buffer that was there. */
static struct session whole;

static ssize_t deliver(struct session *s, uint8_t *buf, size_t count)
{
	size_t size = header + SA_HEADER + s->size;
	uint32_t length = size;

	memcpy(s->head + 16, &length, sizeof length);
	if (size > count) {
		memcpy(buf, s->head, count < header + SA_HEADER ? count : header + SA_HEADER);
		errno = ENOSPC;
		return -1;
	}
	memcpy(buf, s->head, header + SA_HEADER);
	memcpy(buf + header + SA_HEADER, s->data, s->size);
	end(s);
	return size;
}

static void acknowledge(const struct session *s, const uint8_t *umad)
{
	uint8_t ack[MAX_HEADER + MAD_SIZE];
	uint8_t *mad = ack + header;

	memset(ack, 0, sizeof ack);
	memcpy(ack, umad, header + SA_HEADER);
	memset(ack + 4, 0, 16);
	mad[3] ^= RESPONSE;
	mad[25] = ACK;
	mad[26] = 0xf8 | ACTIVE;
	put32(mad + 28, s->done);
	put32(mad + 32, s->window);
	memcpy(acknowledgement, ack, sizeof ack);
	next_write(s->fd, ack, header + MAD_SIZE);
}

/* Takes a segment and gives the message when it is whole. */
static struct session *take(int fd, const uint8_t *umad)
{
	const uint8_t *mad = umad + header;
	struct session *s = of(coming, umad, mad[3]);
	uint32_t segment = get32(mad + 28), length = get32(mad + 32);
	size_t n = SA_DATA;

	if (!s && segment == 1 && mad[26] & FIRST)
		s = start(coming, &next_coming, fd, umad);
	if (!s || segment != s->done + 1)
		return NULL;
	if (mad[26] & LAST) {
		if (length < SEGMENT - SA_DATA || length > SEGMENT)
			return NULL; /* as if it were lost */
		n = length - (SEGMENT - SA_DATA);
	}
	if (s->size + n > s->room) {
		s->room = 2 * s->room + 64 * SA_DATA;
		if (s->room > MESSAGE_MOST || !(s->data = realloc(s->data, s->room)))
			abort();
	}
	memcpy(s->data + s->size, mad + SA_HEADER, n);
	s->size += n;
	s->done++;
	if (s->done > s->window || s->done == s->window || mad[26] & LAST) {
		s->window = s->done + WINDOW;
		acknowledge(s, umad);
	}
	return mad[26] & LAST ? s : NULL;
}

static ssize_t timed_out(struct request *r, uint8_t *buf, size_t count)
{
	enum { COMMON = 24 }; /* of a MAD that came back */
	uint32_t status = TIMED_OUT, length = header + COMMON;

	if (count > header + COMMON)
		count = header + COMMON;
	memcpy(buf, r->umad, count);
	memcpy(buf + 4, &status, 4);
	memcpy(buf + 16, &length, 4);
	r->fd = 0;
	return count;
}

/* One datagram: what it completed, 0 when nothing, -1 when there is none. */
static ssize_t once(int fd, uint8_t *buf, size_t count)
{
	uint8_t umad[MAX_HEADER + MAD_SIZE], *mad = umad + header;
	ssize_t n = next_read(fd, umad, header + MAD_SIZE);
	struct session *s;

	if (n < (ssize_t)(header + SA_HEADER) || mad[1] != SA_CLASS) {
		if (n > 0)
			memcpy(buf, umad, (size_t)n < count ? (size_t)n : count);
		return n;
	}
	if (mend)
		mend(mad);
	if (mad[3] & RESPONSE && !(mad[26] & ACTIVE && of(coming, umad, mad[3])) && mad[25] != ACK && !answered(mad))
		return 0;
	if (!(mad[26] & ACTIVE)) {
		n = count < header + MAD_SIZE ? count : header + MAD_SIZE;
		memcpy(buf, umad, n);
		return n;
	}
	switch (mad[25]) {
	case DATA:
		s = take(fd, umad);
		if (!s)
			return 0;
		if (mad[3] & RESPONSE)
			acknowledged = 1;
		whole = *s;
		memset(s, 0, sizeof *s);
		return deliver(&whole, buf, count);
	case ACK:
		s = of(sent, umad, mad[3] ^ RESPONSE);
		if (s && get32(mad + 28) >= s->segments) {
			end(s);
		} else if (s) {
			s->window = get32(mad + 32);
			go_on(s);
		}
		return 0;
	default: /* STOP, ABORT */
		s = of(sent, umad, mad[3] ^ RESPONSE);
		if (s)
			end(s);
		s = of(coming, umad, mad[3]);
		if (s)
			end(s);
		return 0;
	}
}

static int receiving(int fd)
{
	int i, found = 0;

	pthread_mutex_lock(&lock);
	for (i = 0; i < SESSIONS; i++)
		found |= coming[i].used && coming[i].fd == fd;
	pthread_mutex_unlock(&lock);
	return found;
}

ssize_t read(int fd, void *buf, size_t count)
{
	struct request *r;
	int64_t soonest;
	ssize_t n;

	if (!is_umad(fd))
		return next_read(fd, buf, count);
	reader = pthread_self();
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		pthread_mutex_lock(&lock);
		if (whole.used && whole.fd == fd) {
			n = deliver(&whole, buf, count);
		} else if ((r = late(fd, &soonest))) {
			n = timed_out(r, buf, count);
		} else {
			n = once(fd, buf, count);
		}
		pthread_mutex_unlock(&lock);
		if (n)
			return n;
		/* A segment or an acknowledgement: for the next segment it waits so long only. */
		if (poll(&p, 1, receiving(fd) ? PATIENCE : -1) <= 0) {
			errno = EAGAIN;
			return -1;
		}
	}
}

/* Waits until the acknowledgements have passed the simulator, which forgets what a client
 * that leaves has sent: the answer to a question behind them shows it. Without them the
 * other side sends again, to whoever has this client's place next, and libumad2sim dies of
 * what comes before somebody has asked for it. */
static void settle(int fd)
{
	uint8_t umad[MAX_HEADER + MAD_SIZE], *mad = umad + header;
	int64_t until = now() + PATIENCE;
	struct pollfd p = {.fd = fd, .events = POLLIN};

	memcpy(umad, acknowledgement, sizeof umad);
	memset(mad, 0, MAD_SIZE);
	mad[0] = 1;
	mad[1] = SA_CLASS;
	mad[2] = 2;
	mad[3] = 1; /* Get */
	put32(mad + 12, BEHIND_ALL);
	mad[17] = 1; /* ClassPortInfo */
	next_write(fd, umad, header + MAD_SIZE);
	while (now() < until)
		if (next_poll(&p, 1, PATIENCE) > 0 && next_read(fd, umad, sizeof umad) > 0 && get32(mad + 12) == BEHIND_ALL)
			return;
}

int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	enum { UNREGISTER = 0x40041b02 };
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (!next)
		next = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
	if (is_umad(fd) && request == UNREGISTER && acknowledged) {
		acknowledged = 0;
		/* A thread that received may have been ended inside libumad2sim, with its lock. */
		if (pthread_equal(reader, pthread_self()))
			settle(fd);
		else
			usleep(20000);
	}
	return next(fd, request, arg);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	int64_t until = timeout < 0 ? INT64_MAX : now() + timeout;

	if (count != 1 || !is_umad(fds->fd))
		return next_poll(fds, count, timeout);
	for (;;) {
		int64_t soonest, left;
		int due, n;

		pthread_mutex_lock(&lock);
		due = (whole.used && whole.fd == fds->fd) || late(fds->fd, &soonest);
		pthread_mutex_unlock(&lock);
		if (due) {
			fds->revents = POLLIN;
			return 1;
		}
		if (soonest > until)
			soonest = until;
		left = soonest == INT64_MAX ? -1 : soonest - now();
		if (left < 0 && soonest != INT64_MAX)
			left = 0;
		/* Requests that others send meanwhile are looked at soon. */
		if (left < 0 || left > 50)
			left = 50;
		n = next_poll(fds, 1, left);
		if (n || now() >= until)
			return n;
	}
}

#endif
