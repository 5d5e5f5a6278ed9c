package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/trust"
)

// withOptions returns the section with the settings of the file of options. A setting that the file does not name is as it
// is here.
func (s *SA) withOptions(path func(string) string) (*SA, error) {
	if s.Options == "" {
		return s, nil
	}
	file := path(s.Options)
	data, err := readBounded("options of subnet administration", file, trust.MaxOptionsSize)
	if err != nil {
		return nil, fmt.Errorf("fabric.sa.options: %w", err)
	}
	o, err := trust.ParseOptions(file, data, s.trust())
	if err != nil {
		return nil, fmt.Errorf("fabric.sa.options: %w", err)
	}
	to := *s
	to.setTrust(&o)
	if err := to.readOthers(file, string(data)); err != nil {
		return nil, fmt.Errorf("fabric.sa.options: %w", err)
	}
	return &to, nil
}

// otherOptions are those of the file that are about no trust, and what OpenSM has for
// "(null)". prefix_routes_file is not among them: OpenSM writes its name into every
// file, whether there is one or not.
func (s *SA) otherOptions() map[string]otherOption {
	d := DefaultSA()
	return map[string]otherOption{
		"sa_pr_full_world_queries_allowed":  {&s.FullWorld, d.FullWorld},
		"ipoib_mcgroup_creation_validation": {&s.IPoIBValidation, d.IPoIBValidation},
		"mcgroup_join_validation":           {&s.JoinValidation, d.JoinValidation},
		"consolidate_ipv6_snm_req":          {&s.ShareSNM, d.ShareSNM},
		"drop_event_subscriptions":          {&s.DropWithPort, d.DropWithPort},
		"drop_subscr_on_report_fail":        {&s.DropOnFail, d.DropOnFail},
	}
}

type otherOption struct {
	to  *bool
	def bool
}

// readOthers takes options from the text of a file whose size was checked. All problems
// are reported.
func (s *SA) readOthers(file, text string) error {
	known := s.otherOptions()
	var errs []error
	line := 0
	for row := range strings.Lines(text) {
		line++
		row, _, _ = strings.Cut(row, "#")
		words := strings.Fields(row)
		if len(words) == 0 {
			continue
		}
		value := strings.Join(words[1:], " ")
		if err := s.readOther(known, words[0], value); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %s %q: %w", file, line, words[0], value, err))
		}
	}
	return errors.Join(errs...)
}

func (s *SA) readOther(known map[string]otherOption, name, value string) error {
	d := DefaultSA()
	switch name {
	case "max_rate_enum":
		return readNumber(&s.MaxRate, d.MaxRate, ib.Rate2_5, 63, value)
	case "max_sa_reports_queued":
		return readNumber(&s.ReportsQueued, d.ReportsQueued, 1, maxReports, value)
	case "max_sa_reports_on_wire":
		return readNumber(&s.ReportsOnWire, d.ReportsOnWire, 1, maxReports, value)
	}
	o, ok := known[name]
	if !ok {
		return nil
	}
	switch strings.ToUpper(value) {
	case "TRUE":
		*o.to = true
	case "FALSE":
		*o.to = false
	case "(NULL)":
		*o.to = o.def
	default:
		return errors.New("want TRUE or FALSE")
	}
	return nil
}

func readNumber[T ~int | ~uint8](to *T, def, least, most T, value string) error {
	if value == "(null)" {
		*to = def
		return nil
	}
	n, err := strconv.ParseUint(value, 0, 32)
	if err != nil || n < uint64(least) || n > uint64(most) {
		return fmt.Errorf("want %d to %d", least, most)
	}
	*to = T(n)
	return nil
}
