package cli

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	v1 "portcullis/api/v1"
)

// WhyPort says why a port is not isolated, and "" for one that is.
func WhyPort(p *v1.IsolationPortVerdict) string {
	other := ""
	if p.Other != "" {
		other = " " + p.Other
	}
	end := map[string]string{
		v1.EndSends: "to" + other, v1.EndReceives: "from" + other, v1.EndBoth: "to and from" + other,
	}[p.End]
	if other == "" {
		end = map[string]string{v1.EndSends: "from it", v1.EndReceives: "to it", v1.EndBoth: "from it and to it"}[p.End]
	}
	why := map[string]string{
		v1.PortNotFound: "the port was not found where it is declared", v1.PortNotRead: "a value was not read", v1.PortOld: "the proof is older than it counts for",
	}[p.Cause]
	switch {
	case p.Verdict == v1.Leaks:
		return "a packet passes " + end
	case p.Detail != "":
		why = p.Detail
	}
	if end != "" {
		why += "; a packet may pass " + end
	}
	return why
}

// HostIsolation says in one line what was proven last of the ports of a host, and "" if err is that the credential may not see it or
// that the service has no port in the fabric.
func HostIsolation(ports *v1.IsolationPorts, err error) string {
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		switch {
		case p.Code == v1.CodeNotExamined:
			return "not proven: nothing was examined since the service started"
		case p.Status == http.StatusForbidden, p.Code == v1.CodeSMElsewhere:
			return ""
		}
	}
	if err != nil {
		return "not known: " + err.Error()
	}
	if len(ports.Items) == 0 {
		return "not proven: the newest examination was about no port of the host"
	}
	age := time.Duration(ports.Age * float64(time.Second)).Round(time.Second)
	var worst *v1.IsolationPortVerdict
	for i := range ports.Items {
		if p := &ports.Items[i]; worst == nil || rank(p.Verdict) > rank(worst.Verdict) {
			worst = p
		}
	}
	text := fmt.Sprintf("isolated, %s, examined %v ago", Count(len(ports.Items), "port"), age)
	switch {
	case worst.Verdict == v1.Leaks:
		text = fmt.Sprintf("NOT ISOLATED: port %v: %s; examined %v ago", worst.GUID, WhyPort(worst), age)
	case worst.Verdict != v1.Isolated:
		text = fmt.Sprintf("not proven: port %v: %s; examined %v ago", worst.GUID, WhyPort(worst), age)
	}
	return text
}

// rank orders verdicts, the worst last. One that this program does not know is no proof.
func rank(verdict string) int {
	switch verdict {
	case v1.Isolated:
		return 0
	case v1.Leaks:
		return 2
	default:
		return 1
	}
}
