package tenancy

import (
	"fmt"
	"slices"

	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/fabricsm/ib"
)

// choosePKey is pure except for the clock. It returns a P_Key that is in each of within, which are those of tenant and
// credential, unless they are nil, and in none of others; 0 and why if there is none. held are P_Keys whose packets pass at ports that are no members.
func (s *Service) choosePKey(within []Ranges, others Ranges, known map[string]store.Record[PKeyRecord], held map[ib.PKey]bool) (ib.PKey, string) {
	var oldest ib.PKey
	passing := 0
	var since PKeyRecord
	counts := map[PKeyState]int{}
	for k := max(s.o.PKeyFirst.Base(), 1); k <= s.o.PKeyLast.Base() && k < ib.DefaultPKeyLimited; k++ {
		if slices.Contains(s.o.PKeyReserved, k) || others.contains(k) || slices.ContainsFunc(within, func(r Ranges) bool { return r != nil && !r.contains(k) }) {
			continue
		}
		r, used := known[k.String()]
		if held[k] && (!used || r.Value.State == PKeyAbsent) {
			passing++
			continue
		}
		if !used {
			return k, ""
		}
		counts[r.Value.State]++
		if r.Value.State != PKeyAbsent || s.now().Sub(r.Value.Since) < s.o.PKeyMinAge {
			continue
		}
		if oldest == 0 || r.Value.Since.Before(since.Since) {
			oldest, since = k, r.Value
		}
	}
	limits := ""
	for i, whose := range []string{"tenant", "credential"} {
		if i < len(within) && within[i] != nil {
			limits += fmt.Sprintf(" and those of this %s, %v,", whose, within[i])
		}
	}
	if passing > 0 {
		limits += fmt.Sprintf(" packets of %d pass at ports that are no members,", passing)
	}
	return oldest, fmt.Sprintf("of %v to %v%s %d are used, %d quarantined, and %d proven absent less than %v ago",
		s.o.PKeyFirst, s.o.PKeyLast, limits, counts[PKeyUsed], counts[PKeyQuarantined], counts[PKeyAbsent], s.o.PKeyMinAge)
}

// chooseNamed is choosePKey for a P_Key that was named. adopted reports whether it may be one that ports have which were adopted.
func (s *Service) chooseNamed(k ib.PKey, known map[string]store.Record[PKeyRecord], adopted bool) error {
	r, used := known[k.Base().String()]
	if !used {
		return nil
	}
	switch age := s.now().Sub(r.Value.Since); {
	case r.Value.State == PKeyUsed:
		return refusal.New(refusal.Conflict, "p_key_used", "name another one, or none", "P_Key %v belongs to a cluster", k)
	case r.Value.State == PKeyAdopted && !adopted:
		return refusal.New(refusal.Refused, "p_key_adopted", "name another one, or use a credential of an operator that has it in its p_keys",
			"P_Key %v is adopted: ports have it of whose hosts nothing is proven", k)
	case r.Value.State == PKeyAdopted:
		return nil // the cluster gets the partition of hosts that are yet to attest
	case r.Value.State != PKeyAbsent:
		return refusal.New(refusal.Conflict, "p_key_quarantined", "see the quarantined P_Keys for what it waits for",
			"P_Key %v is quarantined: it was that of a cluster which is deleted, and is not proven absent", k)
	case age < s.o.PKeyMinAge:
		return refusal.New(refusal.Conflict, "p_key_quarantined", "ask again then",
			"P_Key %v rests for another %v", k, (s.o.PKeyMinAge - age).Round(1e9))
	default:
		return nil
	}
}
