package qos

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

func (p *parser) groupKey(key, value string) bool {
	switch key {
	case "name":
		p.group.name = value
	case "port-guid":
		p.group.guids = normal(append(p.group.guids, p.ranges(value, 64)...))
	case "port-name":
		for _, name := range items(value) {
			p.group.names[name] = true
		}
	case "pkey":
		p.keys = append(p.keys, p.pkeys(value)...)
	case "partition":
		p.group.parts = append(p.group.parts, items(value)...)
	case "node-type":
		for _, t := range items(value) {
			p.nodeType(t)
		}
	default:
		return false
	}
	return true
}

func (p *parser) nodeType(name string) {
	switch strings.ToUpper(name) {
	case "CA":
		p.group.types |= 1 << ib.NodeCA
	case "SWITCH":
		p.group.types |= 1 << ib.NodeSwitch
	case "ROUTER":
		p.group.types |= 1 << ib.NodeRouter
	case "SELF":
		p.group.self = true
	case "ALL":
		p.group.all = true
	default:
		p.wrong("node type %q: want CA, SWITCH, ROUTER, SELF or ALL", short(name))
	}
}

func (p *parser) levelKey(key, value string) bool {
	l := &p.level
	switch key {
	case "name":
		l.Name = value
	case "sl":
		l.SL, l.HasSL = ib.SL(p.number(key, value, 0, 15)), true
	case "mtu-limit":
		l.MTULimit = ib.MTU(p.number(key, value, uint64(ib.MTU256), uint64(ib.MTU4096)))
	case "rate-limit":
		l.RateLimit = ib.Rate(p.number(key, value, uint64(ib.Rate2_5), uint64(ib.Rate2400)))
	case "packet-life":
		l.PacketLife, l.HasLife = uint8(p.number(key, value, 0, 63)), true
	case "pkey":
		l.PKeys = normal(append(l.PKeys, p.pkeys(value)...))
	case "path-bits":
		p.policy.Notices = append(p.policy.Notices, fmt.Sprintf("%s:%d: path-bits is ignored", p.file, p.line))
	default:
		return false
	}
	return true
}

func (p *parser) ruleKey(key, value string) bool {
	r := &p.rule
	switch key {
	case "source":
		r.source = append(r.source, items(value)...)
	case "destination":
		r.dest = append(r.dest, items(value)...)
	case "qos-class":
		r.classes = normal(append(r.classes, p.ranges(value, 12)...))
	case "service-id":
		r.services = normal(append(r.services, p.ranges(value, 64)...))
	case "pkey":
		r.rule.pkeys = normal(append(r.rule.pkeys, p.pkeys(value)...))
	case "qos-level-name":
		r.levelName, r.hasLevel = value, true
	default:
		return false
	}
	return true
}
