"""A second model of the caching allocator, written from the rules in doc/caching.md alone, for
clarity: lists, linear searches, one device. It shares nothing with src/. Sizes are ints, in bytes.
"""

KIB, MIB, TIB = 1 << 10, 1 << 20, 1 << 40
INFINITE = float("inf")


class Full(Exception):
    """The device is out of memory."""


class Block:
    def __init__(self, address, size, stream, small, expandable=None):
        self.address, self.size, self.stream, self.small = address, size, stream, small
        self.expandable = expandable  # the Space that it lies in, or None
        self.free, self.mapped, self.requested, self.born = True, True, 0, 0


class Space:
    """Address space of an expandable segment."""

    def __init__(self, base, size, page):
        self.base, self.size, self.page = base, size, page


class Naive:
    def __init__(self, capacity=0, fraction=0.0, **settings):
        self.segments = []  # each a list of blocks by address
        self.capacity, self.fraction = capacity, fraction
        self.address = 1 << 44
        self.reserved = self.retries = self.failures = self.refuse = 0
        self.searches = {True: 0, False: 0}
        self.trace = []  # as torch records it
        self.settle(**settings)

    def settle(
        self,
        large=20 * MIB,
        max_split=INFINITE,
        rounding=None,
        divisions=None,
        gc=0.0,
        expandable=False,
    ):
        self.large, self.max_split, self.gc, self.expandable = large, max_split, gc, expandable
        self.rounding = large if rounding is None else rounding
        self.divisions = divisions or {}

    # ---- Rules of size ----

    def round(self, size):
        if size < 512:
            return 512
        power = 1
        while power * 2 <= size:
            power *= 2
        interval = max(1, min(power // MIB, 1 << 15))
        divisions = self.divisions.get(interval, 0)
        if divisions > 0 and size > 512 * divisions:
            if divisions == 1 or power == size:
                return size
            step = power // divisions
            while power < size:
                power += step
            return power
        return -(-size // 512) * 512

    def segment_size(self, size):
        if size <= MIB:
            return 2 * MIB
        return self.large if size < 10 * MIB else -(-size // (2 * MIB)) * 2 * MIB

    # ---- The trace ----

    def record(self, action, address, size, stream):
        self.trace.append({"action": action, "addr": address, "size": size, "stream": stream})

    # ---- The driver ----

    def take(self, size):
        if self.refuse:
            self.refuse -= 1
            return False
        if self.capacity and self.reserved + size > self.capacity:
            return False
        self.reserved += size
        return True

    def place(self, size):
        address = self.address
        self.address += -(-size // (2 * MIB)) * 2 * MIB
        return address

    # ---- Looking ----

    def blocks(self):
        return sorted((b for s in self.segments for b in s), key=lambda b: b.address)

    def pool(self, small, stream=None):
        """Free blocks in the order of the pool."""
        return sorted(
            (
                b
                for s in self.segments
                for b in s
                if b.free and b.mapped and b.small == small and stream in (None, b.stream)
            ),
            key=lambda b: (b.stream, b.size, b.address),
        )

    def segment(self, block):
        return next(s for s in self.segments if block in s)

    def after(self, block):
        segment = self.segment(block)
        index = segment.index(block) + 1
        return segment[index] if index < len(segment) else None

    # ---- Requests ----

    def allocate(self, wanted, stream=0):
        """Returns a Block, or None for 0 bytes; raises Full."""
        if not wanted:
            return None
        if wanted >= 1 << 60:
            self.failures += 1
            raise Full
        size = self.round(wanted)
        small = size <= MIB
        block = self.cached(size, stream, small) or self.fresh(size, stream, small)
        if block is None:
            self.failures += 1
            self.record("oom", 0, wanted, stream)
            raise Full
        rest = block.size - size
        if small or self.expandable:
            splits = rest >= 512
        else:
            splits = size < self.max_split and rest > MIB
        block.free = False
        if splits:
            segment = self.segment(block)
            other = Block(block.address + size, rest, stream, small, block.expandable)
            other.born = self.searches[small]
            block.size = size
            segment.insert(segment.index(block) + 1, other)
        block.requested = wanted
        self.record("alloc", block.address, wanted, stream)
        return block

    def cached(self, size, stream, small):
        if self.collecting():
            self.searches[small] += 1
        fitting = [b for b in self.pool(small, stream) if b.size >= size]
        if not fitting:
            return None
        chosen = 0
        if self.expandable:

            def reach(block):
                after = self.after(block)
                return block.size + (after.size if after and not after.mapped else 0)

            while (
                fitting[chosen].expandable
                and chosen + 1 < len(fitting)
                and reach(fitting[chosen + 1]) < reach(fitting[chosen])
            ):
                chosen += 1
        else:
            while chosen < len(fitting) and fitting[chosen].expandable:
                chosen += 1
            if chosen == len(fitting):
                return None
        block = fitting[chosen]
        if size < self.max_split and block.size >= self.max_split:
            return None
        if size >= self.max_split and block.size >= size + self.rounding:
            return None
        return block

    def collecting(self):
        return self.gc > 0 and self.fraction > 0 and self.capacity

    def fresh(self, size, stream, small):
        if self.collecting():
            self.collect()
        block = self.new(size, stream, small)
        if block is None and self.release_large(size, stream, small):
            block = self.new(size, stream, small)
        if block is None:
            self.retries += 1
            self.empty()
            block = self.new(size, stream, small)
        return block

    def new(self, size, stream, small):
        whole = self.segment_size(size)
        if self.fraction and self.reserved + whole > int(self.fraction * self.capacity):
            return None
        if self.expandable:
            return self.grow(size, stream, small)
        if not self.take(whole):
            return None
        block = Block(self.place(whole), whole, stream, small)
        block.born = self.searches[small]
        self.segments.append([block])
        self.record("segment_alloc", block.address, whole, stream)
        return block

    # ---- Expandable segments ----

    def grow(self, size, stream, small):
        spaces = [s for s in self.segments if s[0].expandable and s[0].small == small]
        spaces = [s for s in spaces if s[0].stream == stream]
        for segment in sorted(spaces, key=lambda s: s[0].address):
            for i, hole in enumerate(segment):
                if hole.mapped:
                    continue
                begin = i - 1 if i and segment[i - 1].free else i
                end = begin
                while end < len(segment) and segment[end].free:
                    end += 1
                if sum(b.size for b in segment[begin:end]) >= size:
                    return self.back(segment, segment[begin], size)
        page = 2 * MIB if small else self.large
        device = min(self.capacity or TIB, TIB)
        length = -(-(device + device // 8) // page) * page
        if size > length:
            return None
        space = Space(self.place(length), length, page)
        hole = Block(space.base, length, stream, small, space)
        hole.mapped = False
        self.segments.append([hole])
        return self.back(self.segments[-1], hole, size)

    def back(self, segment, block, size):
        """Maps pages from `block` on until it has `size` bytes."""
        if not block.mapped:
            block = self.map(segment, block, min(size, block.size))
        while block is not None and block.size < size:
            hole = segment[segment.index(block) + 1]
            block = self.map(segment, hole, min(size - block.size, hole.size))
        return block

    def map(self, segment, hole, size):
        page = hole.expandable.page
        size = -(-size // page) * page
        if not self.take(size):
            return None
        at = segment.index(hole)
        if size < hole.size:
            rest = Block(
                hole.address + size, hole.size - size, hole.stream, hole.small, hole.expandable
            )
            rest.mapped = False
            segment.insert(at + 1, rest)
        hole.size, hole.mapped = size, True
        self.record("segment_map", hole.address, size, hole.stream)
        return self.tidy(segment, hole)

    def tidy(self, segment, block):
        """Merges a free block with free neighbours of its kind; returns what it became."""
        at = segment.index(block)
        for other in (at + 1, at - 1):
            if 0 <= other < len(segment):
                neighbour = segment[other]
                if neighbour.free and neighbour.mapped == block.mapped:
                    block.address = min(block.address, neighbour.address)
                    block.size += neighbour.size
                    segment.remove(neighbour)
        block.born = self.searches[block.small]
        return block

    def unmap(self, block):
        segment, space = self.segment(block), block.expandable
        low = -(-(block.address - space.base) // space.page) * space.page
        high = (block.address + block.size - space.base) // space.page * space.page
        if low >= high:
            return
        parts = []
        for begin, end, mapped in (
            (block.address, space.base + low, True),
            (space.base + low, space.base + high, False),
            (space.base + high, block.address + block.size, True),
        ):
            if begin < end:
                part = Block(begin, end - begin, block.stream, block.small, space)
                part.mapped, part.born = mapped, self.searches[block.small]
                parts.append(part)
        at = segment.index(block)
        segment[at : at + 1] = parts
        self.tidy(segment, next(p for p in parts if not p.mapped))
        self.reserved -= high - low
        self.record("segment_unmap", space.base + low, high - low, block.stream)
        if len(segment) == 1:
            self.segments.remove(segment)

    # ---- Giving back ----

    def release(self, block):
        if block is None:
            return
        self.record("free_requested", block.address, block.requested, block.stream)
        self.record("free_completed", block.address, block.requested, block.stream)
        block.free, block.requested = True, 0
        self.tidy(self.segment(block), block)

    def whole(self, block):
        return not block.expandable and len(self.segment(block)) == 1

    def give_back(self, block):
        self.record("segment_free", block.address, block.size, block.stream)
        self.reserved -= block.size
        self.segments.remove(self.segment(block))

    def empty(self):
        for small in (False, True):
            blocks = self.pool(small)
            for block in blocks:
                if self.whole(block):
                    self.give_back(block)
            for block in blocks:
                if block.expandable:
                    self.unmap(block)

    def release_large(self, size, stream, small):
        if self.max_split == INFINITE:
            return False
        wanted = max(size, self.max_split)
        blocks = self.pool(small, stream)
        fitting = [b for b in blocks if b.size >= wanted]
        if fitting and self.whole(fitting[0]):
            self.give_back(fitting[0])
            return True
        released = 0
        below = blocks[: blocks.index(fitting[0])] if fitting else blocks
        for block in reversed(below):
            if released >= wanted or block.size < self.max_split:
                break
            if self.whole(block):
                released += block.size
                self.give_back(block)
        return released >= wanted

    def collect(self):
        threshold = int(self.gc * int(self.fraction * self.capacity))
        if self.reserved <= threshold:
            return
        target, released = self.reserved - threshold, 0
        blocks = [b for b in self.pool(False) if self.whole(b)]

        def age(block):
            return self.searches[False] - block.born

        total = sum(map(age, blocks))
        while blocks and released < target:
            limit, left, freed = total / len(blocks), [], False
            for block in blocks:
                if age(block) >= limit:
                    freed = True
                    released += block.size
                    total -= age(block)
                    self.give_back(block)
                else:
                    left.append(block)
            blocks = left
            if not freed:
                break

    # ---- What is compared ----

    def figures(self):
        blocks = [b for s in self.segments for b in s if not b.free]
        segments = sum(1 for s in self.segments if not s[0].expandable)
        return [
            sum(b.requested for b in blocks),
            sum(b.size for b in blocks),
            self.reserved,
            segments,
            self.retries,
            self.failures,
        ]

    def dump(self):
        words = []
        for block in self.blocks():
            if not block.mapped:
                continue
            segment = self.segment(block)
            at = segment.index(block)
            first = not at or not segment[at - 1].mapped
            words.append(
                f"{block.address}+{block.size}{'' if block.free else 'a'}"
                f"{'s' if block.small else ''}{'x' if block.expandable else ''}"
                f"{'|' if first else ''}@{block.requested}"
            )
        return words

    def snapshot(self, settings=""):
        """As torch.cuda.memory._snapshot() gives it."""
        segments = []
        for segment in self.segments:
            ranges, before = [], None
            for block in segment:
                if block.mapped and before is None:
                    ranges.append([])
                before = block if block.mapped else None
                if block.mapped:
                    ranges[-1].append(block)
            segments += [self.describe(blocks) for blocks in ranges]
        segments.sort(key=lambda s: s["address"])
        return {
            "segments": segments,
            "device_traces": [list(self.trace)],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": settings},
        }

    def describe(self, blocks):
        held = [b for b in blocks if not b.free]
        return {
            "device": 0,
            "address": blocks[0].address,
            "total_size": sum(b.size for b in blocks),
            "allocated_size": sum(b.size for b in held),
            "active_size": sum(b.size for b in held),
            "requested_size": sum(b.requested for b in held),
            "stream": blocks[0].stream,
            "segment_type": "small" if blocks[0].small else "large",
            "segment_pool_id": (0, 0),
            "is_expandable": blocks[0].expandable is not None,
            "frames": [],
            "blocks": [
                {
                    "address": b.address,
                    "size": b.size,
                    "requested_size": b.requested,
                    "state": "inactive" if b.free else "active_allocated",
                    "frames": [],
                }
                for b in blocks
            ],
        }
