/* The table of blocks is split by address into shards, each an open-addressing hash table with
 * linear probing and a spinlock. Tables live in anonymous mappings, never in the heap that is being
 * counted. A free looks a block up only if its address is a multiple of 32, which every block of a
 * stricter alignment than malloc's is; so frees of small malloc blocks mostly cost one test. */
#define _GNU_SOURCE
#include "memtrace.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
enum { SHARDS = 64, INTERVALS = 16, FIRST_CAPACITY = 1024, COUNTED_ALIGNMENT = 32 };

typedef struct entry {
  uintptr_t block; /* 0: never used; 1: erased */
  int64_t size;
} entry;

typedef struct shard {
  _Alignas(64) atomic_flag lock;
  entry *table;
  size_t capacity; /* a power of two, or 0 */
  size_t filled;   /* used and erased entries */
  size_t used;
} shard;

/* The one exception to "no global state": the allocator that is counted is global. */
static shard shards[SHARDS];
static atomic_int_fast64_t current, blocks, allocations, lost;
static atomic_int_fast64_t peaks[INTERVALS];
static atomic_uint open_intervals;

static int (*real_posix_memalign)(void **, size_t, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static void *(*real_memalign)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

/* glibc's own names, for calls that come before dlsym can work. */
extern void __libc_free(void *);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static void resolve(void) {
  *(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
  *(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
  *(void **)&real_memalign = dlsym(RTLD_NEXT, "memalign");
  *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void **)&real_free = dlsym(RTLD_NEXT, "free");
}

static size_t hash(uintptr_t block) {
  return (size_t)(((uint64_t)block >> 5) * UINT64_C(0x9E3779B97F4A7C15) >> 16);
}

static shard *lock_shard_of(uintptr_t block) {
  shard *s = &shards[hash(block) % SHARDS];
  while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
    sched_yield();
  return s;
}

static void unlock(shard *s) {
  atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

static size_t first_slot(const shard *s, uintptr_t block) {
  return hash(block) / SHARDS & (s->capacity - 1);
}

static void put(shard *s, uintptr_t block, int64_t size) {
  size_t i = first_slot(s, block);
  while (s->table[i].block > 1)
    i = (i + 1) & (s->capacity - 1);
  if (s->table[i].block == 0)
    s->filled++;
  s->table[i].block = block;
  s->table[i].size = size;
  s->used++;
}

/* Doubles the table, or only sweeps out erased entries if these are the most. */
static bool grow(shard *s) {
  size_t capacity = s->capacity == 0              ? FIRST_CAPACITY
                    : s->used * 4 < s->capacity   ? s->capacity
                    : s->capacity > SIZE_MAX / 64 ? 0
                                                  : s->capacity * 2;
  if (capacity == 0)
    return false;
  entry *table = mmap(NULL, capacity * sizeof *table, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (table == MAP_FAILED)
    return false;
  shard old = {.table = s->table, .capacity = s->capacity};
  s->table = table;
  s->capacity = capacity;
  s->filled = s->used = 0;
  for (size_t i = 0; i < old.capacity; i++)
    if (old.table[i].block > 1)
      put(s, old.table[i].block, old.table[i].size);
  if (old.table)
    munmap(old.table, old.capacity * sizeof *old.table);
  return true;
}

static entry *find(const shard *s, uintptr_t block) {
  if (s->capacity == 0)
    return NULL;
  for (size_t i = first_slot(s, block); s->table[i].block; i = (i + 1) & (s->capacity - 1))
    if (s->table[i].block == block)
      return &s->table[i];
  return NULL;
}

static void raise_peaks(int64_t now) {
  unsigned open = atomic_load(&open_intervals);
  for (int i = 0; open; i++, open >>= 1) {
    if (!(open & 1))
      continue;
    int_fast64_t peak = atomic_load(&peaks[i]);
    while (peak < now && !atomic_compare_exchange_weak(&peaks[i], &peak, now))
      ;
  }
}

static void add(void *block, size_t size) {
  if (!block || (uintptr_t)block % COUNTED_ALIGNMENT || size > INT64_MAX)
    return;
  shard *s = lock_shard_of((uintptr_t)block);
  bool room = s->filled * 2 < s->capacity || grow(s);
  if (room)
    put(s, (uintptr_t)block, (int64_t)size);
  unlock(s);
  if (!room) {
    atomic_fetch_add(&lost, 1);
    return;
  }
  atomic_fetch_add(&blocks, 1);
  atomic_fetch_add(&allocations, 1);
  raise_peaks(atomic_fetch_add(&current, (int64_t)size) + (int64_t)size);
}

/* Forgets a block; returns its size, or -1 if it was not counted. */
static int64_t drop(void *block) {
  if (!block || (uintptr_t)block % COUNTED_ALIGNMENT)
    return -1;
  shard *s = lock_shard_of((uintptr_t)block);
  entry *e = find(s, (uintptr_t)block);
  int64_t size = -1;
  if (e) {
    size = e->size;
    e->block = 1;
    s->used--;
  }
  unlock(s);
  if (size < 0)
    return -1;
  atomic_fetch_sub(&blocks, 1);
  atomic_fetch_sub(&current, size);
  return size;
}

/* A child process has only the thread that forked: take every lock first, so that none is held by
 * a thread that does not exist there. */
static void before_fork(void) {
  for (int i = 0; i < SHARDS; i++)
    while (atomic_flag_test_and_set_explicit(&shards[i].lock, memory_order_acquire))
      sched_yield();
}

static void after_fork(void) {
  for (int i = 0; i < SHARDS; i++)
    unlock(&shards[i]);
}

__attribute__((constructor)) static void start(void) {
  resolve();
  pthread_atfork(before_fork, after_fork, after_fork);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size) {
  if (!real_posix_memalign)
    resolve();
  int status = real_posix_memalign(out, alignment, size);
  if (status == 0 && alignment >= COUNTED_ALIGNMENT)
    add(*out, size);
  return status;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size) {
  if (!real_aligned_alloc)
    resolve();
  void *block = real_aligned_alloc(alignment, size);
  if (alignment >= COUNTED_ALIGNMENT)
    add(block, size);
  return block;
}

EXPORT void *memalign(size_t alignment, size_t size) {
  void *block = real_memalign ? real_memalign(alignment, size) : __libc_memalign(alignment, size);
  if (alignment >= COUNTED_ALIGNMENT)
    add(block, size);
  return block;
}

EXPORT void free(void *block) {
  int error = errno; /* free keeps errno */
  drop(block);
  if (real_free)
    real_free(block);
  else
    __libc_free(block);
  errno = error;
}

/* A counted block stays counted under its new address, if that is aligned enough to be found. */
EXPORT void *realloc(void *block, size_t size) {
  int64_t before = drop(block);
  void *moved = real_realloc ? real_realloc(block, size) : __libc_realloc(block, size);
  if (before >= 0 && moved)
    add(moved, size);
  else if (before >= 0 && size > 0)
    add(block, (size_t)before);
  return moved;
}

EXPORT int pp_memtrace_version(void) {
  return 1;
}

EXPORT int64_t pp_memtrace_current(void) {
  return atomic_load(&current);
}

EXPORT int64_t pp_memtrace_blocks(void) {
  return atomic_load(&blocks);
}

EXPORT int64_t pp_memtrace_allocations(void) {
  return atomic_load(&allocations);
}

EXPORT int64_t pp_memtrace_lost(void) {
  return atomic_load(&lost);
}

EXPORT int64_t pp_memtrace_size(const void *block) {
  if (!block || (uintptr_t)block % COUNTED_ALIGNMENT)
    return -1;
  shard *s = lock_shard_of((uintptr_t)block);
  const entry *e = find(s, (uintptr_t)block);
  int64_t size = e ? e->size : -1;
  unlock(s);
  return size;
}

EXPORT int pp_memtrace_open(void) {
  unsigned open = atomic_load(&open_intervals);
  for (;;) {
    int i = 0;
    while (i < INTERVALS && open >> i & 1)
      i++;
    if (i == INTERVALS)
      return -1;
    if (atomic_compare_exchange_weak(&open_intervals, &open, open | 1u << i)) {
      pp_memtrace_reset(i);
      return i;
    }
  }
}

EXPORT int64_t pp_memtrace_peak(int interval) {
  return interval < 0 || interval >= INTERVALS ? -1 : atomic_load(&peaks[interval]);
}

EXPORT void pp_memtrace_reset(int interval) {
  if (interval >= 0 && interval < INTERVALS)
    atomic_store(&peaks[interval], atomic_load(&current));
}

EXPORT void pp_memtrace_close(int interval) {
  if (interval >= 0 && interval < INTERVALS)
    atomic_fetch_and(&open_intervals, ~(1u << interval));
}
