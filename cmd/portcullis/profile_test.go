package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"portcullis/api/profile"
	v1 "portcullis/api/v1"
)

// answer returns a report of a profile in which every rule holds, but for some.
func answer(p profile.Profile, states map[string]string) v1.SecurityProfile {
	out := v1.SecurityProfile{Name: p.String(), Holds: true}
	for _, r := range profile.Rules() {
		if !r.In(p) {
			continue
		}
		f := v1.ProfileFinding{Rule: r.Name, State: v1.RuleHolds, Why: r.Why, Cure: r.Cure}
		if s, ok := states[r.Name]; ok {
			f.State, f.Detail, out.Holds = s, "as \x1b[2J was seen", false
		}
		out.Rules = append(out.Rules, f)
	}
	return out
}

// TestProfileCheck: the exit status is 0 only if every rule of the requested profile holds, whatever the service says of the whole.
func TestProfileCheck(t *testing.T) {
	t.Parallel()
	lies := answer(profile.General, map[string]string{"m-key": v1.RuleFails})
	lies.Holds, lies.Score = true, 100
	short := answer(profile.General, nil)
	short.Rules = short.Rules[1:]
	for _, test := range []struct {
		name string
		got  v1.SecurityProfile
		code int // of HTTP
		exit int
		want string
	}{
		{"all hold", answer(profile.General, nil), 200, 0, "0 rules fail"},
		{"one fails", answer(profile.General, map[string]string{"m-key": v1.RuleFails, "escrow-rehearsed": v1.RuleUnknown}), 200, 1, "cure: fabric.keys.root: keys.root"},
		{"one is unknown", answer(profile.General, map[string]string{"escrow-rehearsed": v1.RuleUnknown}), 200, 7, "escrow-rehearsed unknown: as "},
		{"a sum that is wrong", lies, 200, 1, "m-key"},
		{"a state that is new", answer(profile.General, map[string]string{"m-key": "splendid"}), 200, 2, ""},
		{"a rule is missing", short, 200, 2, ""},
		{"another profile", answer(profile.SecuredBareMetal, nil), 200, 2, ""},
		{"refused", v1.SecurityProfile{}, 403, 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"profile", "check", "--profile", "general"}, answering(t, test.code, test.got, func(r *http.Request) bool {
				return r.Method == http.MethodGet && r.URL.Path == "/v1/profile" && r.URL.Query().Get("name") == "general"
			})...)
			var out, errs bytes.Buffer
			if exit := run(t.Context(), args, nil, &out, &errs); exit != test.exit {
				t.Errorf("exit status %d, want %d: %s%s", exit, test.exit, &out, &errs)
			}
			if !strings.Contains(out.String(), test.want) || strings.Contains(out.String(), "\x1b") {
				t.Errorf("the output lacks %q, or has control characters:\n%q", test.want, &out)
			}
			out.Reset()
			if exit := run(t.Context(), append(args, "-o", "json"), nil, &out, &errs); exit != test.exit {
				t.Errorf("as JSON: exit status %d, want %d", exit, test.exit)
			}
			var again v1.SecurityProfile
			if err := json.Unmarshal(out.Bytes(), &again); test.code == 200 && (err != nil || len(again.Rules) != len(test.got.Rules)) {
				t.Errorf("as JSON: %v, %s", err, &out)
			}
		})
	}
}

// TestProfileRules needs no service.
func TestProfileRules(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if exit := run(t.Context(), []string{"profile", "rules"}, nil, &out, &errs); exit != 0 {
		t.Fatalf("exit status %d: %s", exit, &errs)
	}
	for _, r := range profile.Rules() {
		if !strings.Contains(out.String(), r.Name) {
			t.Errorf("%s is not listed", r.Name)
		}
	}
	if exit := run(t.Context(), []string{"profile", "check", "--profile", "best"}, nil, &out, &errs); exit != 2 || !strings.Contains(errs.String(), `"best"`) {
		t.Errorf("exit status %d: %s", exit, &errs)
	}
}
