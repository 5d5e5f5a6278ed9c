package limiter

// fair divides a rate among tenants. Its clock counts picoseconds. A token costs cost picoseconds if one tenant refills
// alone. While n tenants refill, each gets 1/n of the elapsed time. virtual is the time that each of them got since it was
// 0. A tenant is full again when virtual reaches its full. The refilling tenants are in a heap, with the one that is full
// first on top.
//
// In a time t there are at most t/cost new tokens, whichever tenants get them. All tenants together hold at most burst.
type fair struct {
	cost    int64 // of a token, rounded up; 0: no limit
	burst   int64 // tokens of all
	room    int64 // the debt limit of a tenant: its part of the burst, in picoseconds
	virtual int64
	rest    int64 // time that went by and did not divide
	full    [MaxTenants + 1]int64
	at      [MaxTenants + 1]int16 // in heap, from 1 on; 0: full
	heap    [MaxTenants + 1]int16 // tenants
	n       int
}

const (
	second = 1_000_000_000_000 // in picoseconds
	// far is when virtual is set back, which takes weeks without a pause.
	far = 1 << 61
)

func (f *fair) init(a Allowance) {
	*f = fair{}
	if a.Rate != 0 {
		f.cost = (second + int64(a.Rate) - 1) / int64(a.Rate)
		f.burst = int64(a.Burst)
	}
	f.divide(1)
}

// divide divides the burst among the given number of tenants.
func (f *fair) divide(tenants int) {
	if f.cost == 0 {
		return
	}
	f.room = f.burst / int64(tenants) * f.cost
	for i := f.n - 1; i >= 0; i-- {
		t := f.heap[i]
		f.full[t] = min(f.full[t], f.virtual+f.room)
		f.down(i)
	}
}

// pass lets time go by.
func (f *fair) pass(ps int64) {
	for f.n > 0 {
		n := int64(f.n)
		next := f.full[f.heap[0]] - f.virtual
		if each := (f.rest + ps) / n; each < next {
			f.virtual += each
			f.rest = (f.rest + ps) % n
			break
		}
		ps -= next*n - f.rest
		f.rest = 0
		f.virtual += next
		f.pop()
	}
	if f.n == 0 {
		f.virtual, f.rest = 0, 0
	}
	if f.virtual > far {
		f.rebase()
	}
}

func (f *fair) rebase() {
	for _, t := range f.heap[:f.n] {
		f.full[t] -= f.virtual
	}
	f.virtual = 0
}

// has reports whether a tenant has a token.
func (f *fair) has(t int) bool {
	return f.cost == 0 || f.at[t] == 0 || f.full[t]-f.virtual <= f.room-f.cost
}

// take takes a token of a tenant that has one.
func (f *fair) take(t int) {
	switch {
	case f.cost == 0:
		return
	case f.at[t] == 0:
		f.full[t] = f.virtual + f.cost
		f.heap[f.n] = int16(t)
		f.n++
		f.at[t] = int16(f.n)
		f.up(f.n - 1)
	default:
		f.full[t] += f.cost
		f.down(int(f.at[t]) - 1)
	}
}

func (f *fair) pop() {
	f.at[f.heap[0]] = 0
	f.n--
	if f.n > 0 {
		f.heap[0] = f.heap[f.n]
		f.at[f.heap[0]] = 1
		f.down(0)
	}
}

func (f *fair) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if f.full[f.heap[parent]] <= f.full[f.heap[i]] {
			return
		}
		f.swap(i, parent)
		i = parent
	}
}

func (f *fair) down(i int) {
	for {
		least := 2*i + 1
		if least >= f.n {
			return
		}
		if right := least + 1; right < f.n && f.full[f.heap[right]] < f.full[f.heap[least]] {
			least = right
		}
		if f.full[f.heap[i]] <= f.full[f.heap[least]] {
			return
		}
		f.swap(i, least)
		i = least
	}
}

func (f *fair) swap(i, j int) {
	f.heap[i], f.heap[j] = f.heap[j], f.heap[i]
	f.at[f.heap[i]], f.at[f.heap[j]] = int16(i+1), int16(j+1)
}
