package ocsf

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit/chain"
)

// What the schema 1.8.0 demands of the class API Activity (6003): attributes that are required, and the captions of enums.
var (
	required = []string{
		"activity_id", "category_uid", "class_uid", "metadata", "severity_id", "time", "type_uid", // base_event
		"actor", "api", "src_endpoint", // api_activity
	}
	requiredBelow = map[string][]string{
		"metadata": {"product", "version"}, "api": {"operation"},
	}
	recommended = []string{"message", "resources", "status", "status_id"}
	// oneOf are attributes of which an object must have one.
	oneOf = map[string][]string{
		"actor":        {"process", "user", "invoked_by", "session", "app_name", "app_uid"},
		"src_endpoint": {"ip", "uid", "name", "hostname", "svc_name", "instance_uid", "interface_uid", "interface_name", "domain"},
	}
	// attributes are all that the class has, of those in this package.
	attributes = []string{
		"activity_id", "activity_name", "actor", "api", "category_name", "category_uid", "class_name", "class_uid", "message", "metadata", "observables",
		"resources", "severity", "severity_id", "src_endpoint", "status", "status_code", "status_detail", "status_id", "time", "type_name", "type_uid", "unmapped",
	}
	below = map[string][]string{
		"metadata": {
			"version", "product", "uid", "original_event_uid", "original_time", "event_code", "log_name", "log_provider", "is_truncated",
		},
		"actor":        {"user"},
		"api":          {"operation", "service", "request", "response"},
		"src_endpoint": {"ip", "port", "name", "svc_name"},
	}
	enums = map[string]map[int]string{
		"activity": {0: "Unknown", 1: "Create", 2: "Read", 3: "Update", 4: "Delete", 99: ""},
		"severity": {0: "Unknown", 1: "Informational", 2: "Low", 3: "Medium", 4: "High", 5: "Critical", 6: "Fatal", 99: ""},
		"status":   {0: "Unknown", 1: "Success", 2: "Failure", 99: ""},
	}
	users = map[int]string{0: "Unknown", 1: "User", 2: "Admin", 3: "System", 4: "Service", 99: ""}
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 987654321, time.UTC)

func entryOf(action, actor, code string) *chain.Entry {
	return &chain.Entry{
		Seq: 4711, Time: noon, Actor: actor, Action: action, Object: "host/compute-01", Code: code, Detail: "a detail", Reason: "ticket 88",
		Before: "b1", After: "a1", Prev: "p1", Hash: "h1",
	}
}

// object returns an event as a reader of its JSON has it.
func object(t *testing.T, e *chain.Entry) map[string]any {
	t.Helper()
	text, err := json.Marshal(Of(e))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEventsFollowTheSchema holds the event of each action, actor and outcome against what the schema demands.
func TestEventsFollowTheSchema(t *testing.T) {
	t.Parallel()
	all := []string{"of.a.later.version", ""}
	for action := range actions {
		all = append(all, action)
	}
	for kind := range events {
		all = append(all, eventPrefix+kind)
	}
	for _, action := range all {
		for _, actor := range []string{"ann", "service", "agent:h1", "source:192.0.2.7", "local socket, uid 0", ""} {
			for _, code := range []string{"", "ok", "out_of_scope"} {
				conforms(t, object(t, entryOf(action, actor, code)), action+" "+actor+" "+code)
			}
		}
	}
}

func conforms(t *testing.T, e map[string]any, what string) {
	t.Helper()
	for _, name := range slices.Concat(required, recommended) {
		if e[name] == nil {
			t.Fatalf("%s: %s is missing", what, name)
		}
	}
	for name := range e {
		if !slices.Contains(attributes, name) {
			t.Errorf("%s: the class has no %s", what, name)
		}
	}
	for name, of := range below {
		for inner := range e[name].(map[string]any) {
			if !slices.Contains(of, inner) {
				t.Errorf("%s: %s has no %s", what, name, inner)
			}
		}
	}
	for name, of := range requiredBelow {
		for _, inner := range of {
			if e[name].(map[string]any)[inner] == nil {
				t.Errorf("%s: %s.%s is missing", what, name, inner)
			}
		}
	}
	for name, of := range oneOf {
		if !slices.ContainsFunc(of, func(inner string) bool { return e[name].(map[string]any)[inner] != nil }) {
			t.Errorf("%s: %s has none of %v", what, name, of)
		}
	}
	for name, captions := range enums {
		id, label := int(e[name+"_id"].(float64)), ""
		if name == "activity" {
			label = e["activity_name"].(string)
		} else {
			label = e[name].(string)
		}
		want, known := captions[id]
		if !known || want != "" && label != want || id == 99 && label == "" && !strings.HasPrefix(what, " ") {
			t.Errorf("%s: %s_id %d is %q, want %q", what, name, id, label, want)
		}
	}
	user := e["actor"].(map[string]any)["user"].(map[string]any)
	if want, known := users[int(user["type_id"].(float64))]; !known || want != user["type"] {
		t.Errorf("%s: user %v", what, user)
	}
	if e["category_uid"] != 6.0 || e["class_uid"] != 6003.0 || e["type_uid"] != 600300+e["activity_id"].(float64) {
		t.Errorf("%s: category %v, class %v, type %v, activity %v", what, e["category_uid"], e["class_uid"], e["type_uid"], e["activity_id"])
	}
	if e["time"] != float64(noon.UnixMilli()) {
		t.Errorf("%s: time %v", what, e["time"])
	}
}

// TestEvent compares a whole event, as it is exported.
func TestEvent(t *testing.T) {
	t.Parallel()
	got, err := json.MarshalIndent(Of(entryOf("host.assign", "ann", "out_of_scope")), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "category_uid": 6,
 "category_name": "Application Activity",
 "class_uid": 6003,
 "class_name": "API Activity",
 "activity_id": 3,
 "activity_name": "Update",
 "type_uid": 600303,
 "type_name": "API Activity: Update",
 "severity_id": 3,
 "severity": "Medium",
 "status_id": 2,
 "status": "Failure",
 "status_code": "out_of_scope",
 "status_detail": "a detail",
 "time": 1795262400987,
 "message": "ann: host.assign host/compute-01 (out_of_scope): a detail; reason: ticket 88",
 "metadata": {
  "version": "1.8.0",
  "product": {
   "name": "Portcullis",
   "vendor_name": "Portcullis"
  },
  "uid": "h1",
  "original_event_uid": "4711",
  "original_time": "2026-11-21T12:00:00.987654321Z",
  "event_code": "host.assign",
  "log_name": "audit",
  "log_provider": "portcullisd"
 },
 "actor": {
  "user": {
   "uid": "ann",
   "name": "ann",
   "type_id": 0,
   "type": "Unknown"
  }
 },
 "api": {
  "operation": "host.assign",
  "service": {
   "name": "portcullisd"
  },
  "response": {
   "error": "out_of_scope",
   "error_message": "a detail"
  }
 },
 "src_endpoint": {
  "name": "unknown"
 },
 "resources": [
  {
   "uid": "host/compute-01",
   "name": "compute-01",
   "type": "host",
   "role_id": 1,
   "role": "Target",
   "data": {
    "before": "b1",
    "after": "a1"
   }
  }
 ],
 "observables": [
  {
   "name": "actor.user.name",
   "type_id": 4,
   "type": "User Name",
   "value": "ann"
  }
 ],
 "unmapped": {
  "reason": "ticket 88",
  "prev": "p1",
  "hash": "h1",
  "seq": "4711"
 }
}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		action, code string
		activity     Activity
		status       Status
		severity     Severity
	}{
		{"host.assign", "", Update, Success, Informational},
		{"host.assign", "host_scope", Update, Failure, Medium},
		{"tenant.delete", "in_use", Delete, Failure, Medium},
		{"tenant.create", "", Create, Success, Informational},
		{"backup.stream", "", Read, Success, Informational},
		{"evidence.accept", "ok", Create, Success, Informational},
		{"evidence.refuse", "pcr-digest", Create, Failure, Medium},
		{"lock.refuse", "", Update, Failure, Medium},
		{"token.refuse", "ok", Other, Failure, Medium},
		{"host.phase", "admitted", Update, Success, Informational},
		{"host.phase", "fenced", Update, Success, Informational},
		{"inventory.repair.stage", "ticket-1", Create, Success, Informational},
		{"host.release.ordered", "recorded", Update, Success, Informational},
		{"host.release.ordered", "superseded", Update, Failure, Medium},
		{"host.release.ordered", "unknown", Update, Failure, Medium},
		{"event.audit.broken", "altered", Other, Recorded, Critical},
		{"event.guid.conflict", "claims", Other, Recorded, Critical},
		{"event.drift.found", "stray", Other, Recorded, Medium},
		{"event.audit.whole", "verified", Other, Recorded, Informational},
		{"event.of-later", "x", Other, Recorded, Unrated},
		{"of.later", "", Other, Success, Informational},
		{"of.later", "ok", Other, Success, Informational},
		{"of.later", "x", Other, Undetermined, Unrated},
	} {
		e := Of(entryOf(tt.action, "ann", tt.code))
		if e.ActivityID != int(tt.activity) || e.StatusID != int(tt.status) || e.SeverityID != int(tt.severity) {
			t.Errorf("%s %s: activity %d, status %d, severity %d; want %d, %d, %d", tt.action, tt.code, e.ActivityID, e.StatusID, e.SeverityID, tt.activity, tt.status, tt.severity)
		}
		if (e.API.Response != nil) != (tt.status == Failure) {
			t.Errorf("%s %s: response %v", tt.action, tt.code, e.API.Response)
		}
		if tt.activity == Other && e.ActivityName != tt.action {
			t.Errorf("%s: activity_name %q", tt.action, e.ActivityName)
		}
	}
}

func TestSubjects(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		actor string
		kind  int
		from  Endpoint
		seen  []Observable
	}{
		{"ann", 0, Endpoint{Name: Unknown}, []Observable{{"actor.user.name", 4, "User Name", "ann"}}},
		{"service", 4, Endpoint{Service: "portcullisd"}, nil},
		{"agent:h1", 3, Endpoint{Name: "h1"}, nil},
		{"source:192.0.2.7", 0, Endpoint{IP: "192.0.2.7"}, []Observable{{"src_endpoint.ip", 2, "IP Address", "192.0.2.7"}}},
		{"source:[2001:db8::1]:99", 0, Endpoint{IP: "2001:db8::1", Port: 99}, []Observable{{"src_endpoint.ip", 2, "IP Address", "2001:db8::1"}}},
		{"source:fe80::1%ib0", 0, Endpoint{IP: "fe80::1"}, []Observable{{"src_endpoint.ip", 2, "IP Address", "fe80::1"}}},
		{"source:nowhere", 0, Endpoint{Name: "nowhere"}, nil},
		{"agent:", 0, Endpoint{Name: Unknown}, []Observable{{"actor.user.name", 4, "User Name", "agent:"}}},
	} {
		e := Of(entryOf("host.assign", tt.actor, ""))
		if e.Actor.User.UID != tt.actor || e.Actor.User.Name != tt.actor || e.Actor.User.TypeID != tt.kind || e.Source != tt.from || !slices.Equal(e.Observables, tt.seen) {
			t.Errorf("%s: %+v, %+v, %+v; want type %d, %+v, %+v", tt.actor, e.Actor.User, e.Source, e.Observables, tt.kind, tt.from, tt.seen)
		}
	}
}

// TestSources: where a request came from is of its entry, and what the actor says of it counts first.
func TestSources(t *testing.T) {
	t.Parallel()
	seen := func(ip string) Observable { return Observable{"src_endpoint.ip", 2, "IP Address", ip} }
	for _, tt := range []struct {
		actor, source string
		from          Endpoint
		seen          []Observable
	}{
		{"ann", "198.51.100.4", Endpoint{IP: "198.51.100.4"}, []Observable{{"actor.user.name", 4, "User Name", "ann"}, seen("198.51.100.4")}},
		{"ann", "2001:db8::4", Endpoint{IP: "2001:db8::4"}, []Observable{{"actor.user.name", 4, "User Name", "ann"}, seen("2001:db8::4")}},
		{"ann", "nowhere", Endpoint{Name: "nowhere"}, []Observable{{"actor.user.name", 4, "User Name", "ann"}}},
		{"agent:h1", "198.51.100.4", Endpoint{IP: "198.51.100.4", Name: "h1"}, []Observable{seen("198.51.100.4")}},
		{"source:192.0.2.7", "198.51.100.4", Endpoint{IP: "192.0.2.7"}, []Observable{seen("192.0.2.7")}},
		{"service", "198.51.100.4", Endpoint{Service: "portcullisd"}, nil},
	} {
		of := entryOf("host.assign", tt.actor, "")
		of.Source, of.Request = tt.source, "0123456789abcdef"
		e := Of(of)
		if e.Source != tt.from || !slices.Equal(e.Observables, tt.seen) || e.API.Request == nil || e.API.Request.UID != of.Request {
			t.Errorf("%s from %s: %+v, %+v, %+v; want %+v, %+v", tt.actor, tt.source, e.Source, e.Observables, e.API.Request, tt.from, tt.seen)
		}
	}
}

// TestObjects has objects without a name of their own, and with more than one slash.
func TestObjects(t *testing.T) {
	t.Parallel()
	for object, want := range map[string][2]string{"state": {"state", "state"}, "fabric/keys/0x1": {"fabric", "keys/0x1"}} {
		e := entryOf("host.assign", "ann", "")
		e.Object, e.Before, e.After = object, "", ""
		r := Of(e).Resources[0]
		if r.Type != want[0] || r.Name != want[1] || r.UID != object || r.Data != nil {
			t.Errorf("%s: %+v, want %v and no data", object, r, want)
		}
	}
}

// TestBounds has texts that no service writes: each is cut at a whole character, and the event says so.
func TestBounds(t *testing.T) {
	t.Parallel()
	long := "x" + strings.Repeat("ü", maxText)
	e := &chain.Entry{
		Seq: math.MaxUint64, Time: noon, Actor: long, Action: long, Object: long, Code: long, Detail: long, Reason: long, Before: long, After: long, Prev: long, Hash: long,
	}
	text, err := json.Marshal(Of(e))
	if err != nil || len(text) > 25*maxText {
		t.Errorf("an event of %d bytes, %v", len(text), err)
	}
	if strings.Contains(string(text), `\ufffd`) || !strings.Contains(string(text), `"is_truncated":true`) || !strings.Contains(string(text), `"seq":"18446744073709551615"`) {
		t.Errorf("a text is cut within a character, or the event does not say that it is cut: %.200s", text)
	}
	if Of(entryOf("host.assign", "ann", "")).Metadata.Truncated {
		t.Error("a short event is called cut")
	}
}

// TestCaptions has a number for what has no caption.
func TestCaptions(t *testing.T) {
	t.Parallel()
	if got := Severity(6).String() + Status(7).String() + Activity(8).String(); got != "678" {
		t.Errorf("captions %q", got)
	}
}

func TestTableHasNoEvents(t *testing.T) {
	t.Parallel()
	for action := range maps.Keys(actions) {
		if strings.HasPrefix(action, eventPrefix) {
			t.Errorf("%s is an event", action)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("ann", "host.assign", "host/h1", "ok", "detail", int64(1))
	f.Add("source:1.2.3.4", "event.audit.broken", "", "\x1b[2J", "\xff", int64(-1))
	f.Fuzz(func(t *testing.T, actor, action, object, code, detail string, at int64) {
		e := Of(&chain.Entry{Seq: 1, Time: time.UnixMilli(at), Actor: actor, Action: action, Object: object, Code: code, Detail: detail})
		if e.TypeUID != Class*100+e.ActivityID || len(e.Message) > maxText || e.Time != at || e.Source == (Endpoint{}) && actor != "" {
			t.Errorf("%+v", e)
		}
		if _, err := json.Marshal(e); err != nil {
			t.Error(err)
		}
	})
}
