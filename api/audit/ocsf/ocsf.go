// Package ocsf returns entries of the audit log as events of the Open Cybersecurity Schema Framework, for systems that
// collect such events.
//
// Facts of the schema are those of version 1.8.0 (github.com/ocsf/ocsf-schema, tag v1.8.0: events/application/api_activity.json,
// events/base_event.json, dictionary.json and the objects that they name).
package ocsf

import (
	"cmp"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"portcullis/api/audit/chain"
)

// Version is the version of the schema.
const Version = "1.8.0"

// The class of all events here.
const (
	Category = 6    // Application Activity
	Class    = 6003 // API Activity
)

// Event is an event of the class API Activity: an entry of the audit log.
type Event struct {
	CategoryUID  int    `json:"category_uid"`
	CategoryName string `json:"category_name"`
	ClassUID     int    `json:"class_uid"`
	ClassName    string `json:"class_name"`
	ActivityID   int    `json:"activity_id"`
	ActivityName string `json:"activity_name"` // where ActivityID is 99: the action
	TypeUID      int    `json:"type_uid"`      // ClassUID * 100 + ActivityID
	TypeName     string `json:"type_name"`
	SeverityID   int    `json:"severity_id"`
	Severity     string `json:"severity"`
	StatusID     int    `json:"status_id"`
	Status       string `json:"status"`
	StatusCode   string `json:"status_code,omitempty"`   // code of the entry
	StatusDetail string `json:"status_detail,omitempty"` // detail of the entry

	Time        int64        `json:"time"` // milliseconds since 1970-01-01 00:00 UTC
	Message     string       `json:"message"`
	Metadata    Metadata     `json:"metadata"`
	Actor       Actor        `json:"actor"`
	API         API          `json:"api"`
	Source      Endpoint     `json:"src_endpoint"`
	Resources   []Resource   `json:"resources"`
	Observables []Observable `json:"observables,omitempty"`
	Unmapped    Unmapped     `json:"unmapped"`
}

// Metadata says which entry of which log an event is.
type Metadata struct {
	Version      string  `json:"version"` // of the schema
	Product      Product `json:"product"`
	UID          string  `json:"uid"`                // hash of the entry: the same entry is the same event in each export
	OriginalUID  string  `json:"original_event_uid"` // number of the entry
	OriginalTime string  `json:"original_time"`      // RFC 3339, with nanoseconds
	EventCode    string  `json:"event_code"`         // action of the entry
	LogName      string  `json:"log_name"`
	LogProvider  string  `json:"log_provider"`
	Truncated    bool    `json:"is_truncated,omitempty"` // a text was longer than maxText
}

// Product is what wrote the log.
type Product struct {
	Name       string `json:"name"`
	VendorName string `json:"vendor_name"`
}

// Actor is the subject of an entry.
type Actor struct {
	User User `json:"user"`
}

// User is a credential, a host whose TPM answered, an address, or the service.
type User struct {
	UID    string `json:"uid"`
	Name   string `json:"name"`
	TypeID int    `json:"type_id"`
	Type   string `json:"type"`
}

// API is the operation.
type API struct {
	Operation string    `json:"operation"` // action of the entry
	Service   Service   `json:"service"`
	Request   *Request  `json:"request,omitempty"`
	Response  *Response `json:"response,omitempty"` // of a refusal
}

// Service is the program that has the API.
type Service struct {
	Name string `json:"name"`
}

// Request is the request that an entry was written for.
type Request struct {
	UID string `json:"uid"` // as the log of the service has it
}

// Response is a refusal.
type Response struct {
	Error   string `json:"error"` // code of the entry
	Message string `json:"error_message,omitempty"`
}

// Endpoint is where a request came from, as far as the entry says. The schema demands one of its attributes.
type Endpoint struct {
	IP      string `json:"ip,omitempty"`
	Port    uint16 `json:"port,omitempty"`
	Name    string `json:"name,omitempty"` // of a host; Unknown where the entry does not say
	Service string `json:"svc_name,omitempty"`
}

// Unknown is the name of an endpoint that an entry does not name.
const Unknown = "unknown"

// Resource is the object of an entry.
type Resource struct {
	UID    string  `json:"uid"`  // the object, such as host/compute-01
	Name   string  `json:"name"` // compute-01
	Type   string  `json:"type"` // host
	RoleID int     `json:"role_id"`
	Role   string  `json:"role"`
	Data   *Record `json:"data,omitempty"`
}

// Record is what the record of an object was: SHA-256, in hexadecimal. Empty: there was none.
type Record struct {
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Observable is a value that other events may have, too, and the attribute that has it.
type Observable struct {
	Name   string `json:"name"`
	TypeID int    `json:"type_id"`
	Type   string `json:"type"`
	Value  string `json:"value"`
}

// Unmapped is what the schema has no attribute for.
type Unmapped struct {
	Reason string `json:"reason,omitempty"` // why, in the words of the actor
	Prev   string `json:"prev,omitempty"`   // hash of the entry before
	Hash   string `json:"hash"`
	Seq    string `json:"seq"`
}

// maxText bounds each text of an event, in bytes. The service writes none that is as long.
const maxText = 8 << 10

// Of returns the event of an entry. Texts are those of the entry: a writer of JSON has to escape what a terminal would obey.
func Of(e *chain.Entry) *Event {
	c := clipper{}
	actor, action, object := c.clip(e.Actor), c.clip(e.Action), c.clip(e.Object)
	code, detail, why := c.clip(e.Code), c.clip(e.Detail), c.clip(e.Reason)
	hash, prev := c.clip(e.Hash), c.clip(e.Prev)
	seq := strconv.FormatUint(e.Seq, 10)
	is := activityOf(e.Action)
	outcome := statusOf(e.Action, e.Code)
	level := severityOf(e.Action, outcome)
	out := &Event{
		CategoryUID: Category, CategoryName: "Application Activity", ClassUID: Class, ClassName: "API Activity",
		ActivityID: int(is), ActivityName: is.String(), TypeUID: Class*100 + int(is),
		SeverityID: int(level), Severity: level.String(),
		StatusID: int(outcome), Status: outcome.String(), StatusCode: code, StatusDetail: detail,
		Time: e.Time.UnixMilli(),
		Metadata: Metadata{
			Version: Version, Product: Product{"Portcullis", "Portcullis"},
			UID: hash, OriginalUID: seq, OriginalTime: e.Time.UTC().Format(time.RFC3339Nano), EventCode: action,
			LogName: "audit", LogProvider: "portcullisd",
		},
		API:       API{Operation: action, Service: Service{"portcullisd"}},
		Resources: []Resource{resource(object)},
		Unmapped:  Unmapped{Reason: why, Prev: prev, Hash: hash, Seq: seq},
	}
	out.Actor.User, out.Source, out.Observables = subject(actor)
	if id := c.clip(e.Request); id != "" {
		out.API.Request = &Request{id}
	}
	if source := c.clip(e.Source); source != "" && out.Source.IP == "" && actor != "service" {
		out.Source.Name = strings.TrimPrefix(out.Source.Name, Unknown)
		at := endpoint(source)
		out.Source.IP, out.Source.Name = at.IP, cmp.Or(out.Source.Name, at.Name)
		if at.IP != "" {
			out.Observables = append(out.Observables, Observable{"src_endpoint.ip", observableIP, "IP Address", at.IP})
		}
	}
	if is == Other {
		out.ActivityName = action
	}
	out.TypeName = out.ClassName + ": " + is.String()
	if outcome == Failure {
		out.API.Response = &Response{Error: cmp.Or(code, "refused"), Message: detail}
	}
	if e.Before != "" || e.After != "" {
		out.Resources[0].Data = &Record{c.clip(e.Before), c.clip(e.After)}
	}
	out.Message = c.clip(message(actor, action, object, code, detail, why))
	out.Metadata.Truncated = c.clipped
	return out
}

// message returns an entry in a sentence for people.
func message(actor, action, object, code, detail, why string) string {
	text := actor + ": " + action + " " + object
	if code != "" {
		text += " (" + code + ")"
	}
	if detail != "" {
		text += ": " + detail
	}
	if why != "" {
		text += "; reason: " + why
	}
	return text
}

// resource returns an object, KIND/NAME or KIND.
func resource(object string) Resource {
	kind, name, found := strings.Cut(object, "/")
	if !found {
		name = object
	}
	return Resource{UID: object, Name: name, Type: kind, RoleID: 1, Role: "Target"}
}

// Kinds of observables.
const (
	observableIP   = 2
	observableUser = 4
)

// Kinds of users.
const (
	userUnknown = 0
	userSystem  = 3
	userService = 4
)

// subject returns who the actor of an entry is, and where the request came from as far as the actor says that. A credential may be of a person or of a program.
func subject(actor string) (User, Endpoint, []Observable) {
	u := User{UID: actor, Name: actor, TypeID: userUnknown, Type: "Unknown"}
	if actor == "service" {
		u.TypeID, u.Type = userService, "Service"
		return u, Endpoint{Service: "portcullisd"}, nil
	}
	if host, is := strings.CutPrefix(actor, "agent:"); is && host != "" {
		u.TypeID, u.Type = userSystem, "System"
		return u, Endpoint{Name: host}, nil
	}
	if address, is := strings.CutPrefix(actor, "source:"); is && address != "" {
		at := endpoint(address)
		if at.IP == "" {
			return u, at, nil
		}
		return u, at, []Observable{{"src_endpoint.ip", observableIP, "IP Address", at.IP}}
	}
	return u, Endpoint{Name: Unknown}, []Observable{{"actor.user.name", observableUser, "User Name", actor}}
}

// endpoint returns an address with or without a port. What is no address of IP is a name.
func endpoint(address string) Endpoint {
	if a, err := netip.ParseAddr(address); err == nil {
		return Endpoint{IP: a.Unmap().WithZone("").String()}
	}
	if a, err := netip.ParseAddrPort(address); err == nil {
		return Endpoint{IP: a.Addr().Unmap().WithZone("").String(), Port: a.Port()}
	}
	return Endpoint{Name: address}
}

// clipper bounds texts, and remembers whether one was longer.
type clipper struct{ clipped bool }

func (c *clipper) clip(text string) string {
	if len(text) > maxText {
		text, c.clipped = text[:maxText], true
		text = strings.ToValidUTF8(text, "")
	}
	return text
}
