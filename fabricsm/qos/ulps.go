package qos

import (
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
)

// Service IDs of upper layer protocols, as OpenSM knows them.
const (
	serviceSDP  = 0x0000000000010000 // and a port number
	serviceRDMA = 0x0000000001060000 // and a port number: RDS and iSER
	portRDS     = 0x48CA
	portISER    = 0x0CBC
)

// ulp reads a line of the section qos-ulps: "protocol : SL", or
// "protocol, key ranges : SL".
func (p *parser) ulp(text string) {
	// The last colon: what stands before it has none of its own.
	at := strings.LastIndex(text, ":")
	if at < 0 {
		p.wrong("%q: want a protocol, a colon and a service level", short(text))
		return
	}
	value := strings.TrimSpace(text[at+1:])
	sl, err := strconv.ParseUint(value, 0, 8)
	if err != nil || sl > 15 {
		p.wrong("service level %q: want 0 to 15", short(value))
		return
	}
	protocol, by, keyed := strings.Cut(text[:at], ",")
	protocol = strings.ToLower(strings.TrimSpace(protocol))
	if protocol == defaultName && !keyed {
		p.simple = &Level{Name: "default of qos-ulps", SL: ib.SL(sl), HasSL: true}
		return
	}
	r := pendingRule{line: p.line, levelNo: p.simpleLevel(ib.SL(sl))}
	key, list, _ := strings.Cut(strings.TrimSpace(by), " ")
	list = strings.TrimSpace(list)
	ok := false
	if keyed {
		ok = p.ulpByKey(&r, protocol, strings.TrimSpace(key), list)
	} else {
		ok = ulpAlone(&r, protocol)
	}
	if !ok {
		p.wrong("%q: want default; sdp, rds or iser, with or without port-num; ipoib, with or without pkey; srp with target-port-guid; "+
			"or any with service-id, pkey, target-port-guid, source-port-guid or source-target-port-guid", short(text[:at]))
		return
	}
	p.pending = append(p.pending, r)
}

// simpleLevel returns the number of a level that has only a service level.
func (p *parser) simpleLevel(sl ib.SL) int {
	for i, l := range p.policy.levels {
		if l.Name == "" && l.SL == sl {
			return i
		}
	}
	p.policy.levels = append(p.policy.levels, Level{SL: sl, HasSL: true})
	return len(p.policy.levels) - 1
}

func ulpAlone(r *pendingRule, protocol string) bool {
	switch protocol {
	case "sdp":
		r.services = Ranges{{serviceSDP, serviceSDP + 0xFFFF}}
	case "rds":
		r.services = Ranges{{serviceRDMA + portRDS, serviceRDMA + portRDS}}
	case "iser":
		r.services = Ranges{{serviceRDMA + portISER, serviceRDMA + portISER}}
	case "ipoib":
		r.rule.pkeys = Ranges{{uint64(ib.DefaultPKeyLimited), uint64(ib.DefaultPKeyLimited)}}
	default:
		return false
	}
	return true
}

func (p *parser) ulpByKey(r *pendingRule, protocol, key, list string) bool {
	switch protocol + " " + key {
	case "sdp port-num":
		r.services = p.portRanges(list, serviceSDP)
	case "rds port-num", "iser port-num":
		r.services = p.portRanges(list, serviceRDMA)
	case "ipoib pkey", "any pkey":
		r.rule.pkeys = normal(p.pkeys(list))
	case "any service-id":
		r.services = normal(p.ranges(list, 64))
	case "srp target-port-guid", "any target-port-guid":
		r.rule.to = []int{p.ulpGroup(list)}
	case "any source-port-guid":
		r.rule.from = []int{p.ulpGroup(list)}
	case "any source-target-port-guid":
		g := p.ulpGroup(list)
		r.rule.from, r.rule.to = []int{g}, []int{g}
	default:
		return false
	}
	return true
}

// portRanges reads port numbers and returns the service IDs.
func (p *parser) portRanges(list string, base uint64) Ranges {
	all := p.ranges(list, 16)
	for i := range all {
		all[i].From += base
		all[i].To += base
	}
	return normal(all)
}

// ulpGroup makes a port group of GUIDs.
func (p *parser) ulpGroup(list string) int {
	return p.addGroup(group{name: fmt.Sprintf("line %d of qos-ulps", p.line), guids: normal(p.ranges(list, 64))}, nil)
}
