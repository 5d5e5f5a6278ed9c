package attest

import (
	"cmp"
	"fmt"
	"regexp"
)

var (
	pciPattern  = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
	macPattern  = regexp.MustCompile(`^[0-9a-f]{12}$`)
	datePattern = regexp.MustCompile(`^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$`)
	hexDigest   = regexp.MustCompile(`^[0-9a-f]{64}$`)
	wordPattern = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
)

const maxItemData = 511 // bytes: length field of an item's header (9 bits)

// unless wants text of a pattern, or none.
func (p *problems) unless(re *regexp.Regexp, name, v, want string) {
	p.when(v != "" && !re.MatchString(v), "%s %q: want %s", name, clip(v), want)
}

func (h *HCA) checkDevice(p *problems, where string) {
	p.unless(pciPattern, where+" pci_address", h.PCI, "dddd:bb:dd.f in lower-case hexadecimal, with up to eight digits of domain")
	p.unless(macPattern, where+" base_mac", h.BaseMAC, "12 lower-case hexadecimal digits")
	p.text(where+" serial", h.Serial)
	p.text(where+" part_number", h.PartNumber)
	p.when(h.BaseGUID != 0 && !h.BaseGUID.Valid(), "%s: base GUID %v is not valid", where, h.BaseGUID)
	p.digest(where+" registers_sha256", h.Registers)
	p.digest(where+" spdm_sha256", h.SPDM)
	ascending(p, where+" tokens", h.Tokens, maxNames, func(t Token) string { return t.Kind })
	for _, t := range h.Tokens[:min(len(h.Tokens), maxNames)] {
		p.when(!wordPattern.MatchString(t.Kind), "%s: token kind %q", where, clip(t.Kind))
	}
	ascending(p, where+" sources", h.Sources, maxItems, func(s Source) string { return s.Fact })
	for _, s := range h.Sources[:min(len(h.Sources), maxItems)] {
		p.text(where+" source", s.Fact)
		p.text(where+" source", s.From)
	}
	ascending(p, where+" unread", h.Unread, maxItems, func(u Unread) string { return u.Fact })
	for _, u := range h.Unread[:min(len(h.Unread), maxItems)] {
		p.text(where+" unread", u.Fact)
		p.text(where+" unread", u.Reason)
	}
}

func (f *Firmware) check(p *problems, where string) {
	p.text(where+" running firmware", f.Running)
	p.text(where+" pending firmware", f.Pending)
	p.unless(datePattern, where+" release_date", f.ReleaseDate, "YYYY-MM-DD")
	p.when(len(f.Attributes) > maxNames, "%s: %d attribute words", where, len(f.Attributes))
	for _, a := range f.Attributes[:min(len(f.Attributes), maxNames)] {
		p.when(!wordPattern.MatchString(a), "%s: attribute word %q", where, clip(a))
	}
	if r := f.Reference; r != nil {
		p.when(!hexDigest.MatchString(r.SHA256), "%s: digest %q of the reference image", where, clip(r.SHA256))
		p.when(!uuidPattern.MatchString(r.KeyID), "%s: key %q of the reference image: want a lower-case UUID", where, clip(r.KeyID))
	}
}

func (l *Lock) check(p *problems, where string) {
	if f := l.File; f != nil {
		p.when(!hexDigest.MatchString(f.SHA256), "%s: digest %q of the applied file", where, clip(f.SHA256))
		p.when(!uuidPattern.MatchString(f.KeyID), "%s: key %q of the applied file: want a lower-case UUID", where, clip(f.KeyID))
	}
	p.when(len(l.Items) > maxItems, "%s: %d items, at most %d", where, len(l.Items), maxItems)
	for i, it := range l.Items[:min(len(l.Items), maxItems)] {
		at := fmt.Sprintf("%s item %v", where, &it)
		p.when(it.Index >= 1<<24, "%s: index over 24 bits", at)
		p.hex(at+" current", it.Current, maxItemData)
		p.hex(at+" next", it.Next, maxItemData)
		p.when(i > 0 && it.compare(&l.Items[i-1]) <= 0, "%s: not in ascending order", at)
	}
}

// String returns class and index, for example 0x00/290, and port, host and function if one is set.
func (i *Item) String() string {
	s := fmt.Sprintf("0x%02x/%d", i.Class, i.Index)
	if i.Port != 0 || i.Host != 0 || i.Function != 0 {
		s += fmt.Sprintf(" port %d host %d function %d", i.Port, i.Host, i.Function)
	}
	return s
}

func (i *Item) compare(o *Item) int {
	return cmp.Or(cmp.Compare(i.Class, o.Class), cmp.Compare(i.Index, o.Index), cmp.Compare(i.Port, o.Port),
		cmp.Compare(i.Host, o.Host), cmp.Compare(i.Function, o.Function))
}
