package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullis/cli"
)

// result is what came of a check. The names are those of the agent's doctor.
type result string

const (
	resultOK      result = "ok"
	resultWarning result = "warning"
	resultFailed  result = "failed"
	resultSkipped result = "skipped"
)

// check is one thing that the service, or the way to it, needs.
type check struct {
	Name   string `json:"check"`
	Result result `json:"result"`
	Detail string `json:"detail"`         // what was found
	Hint   string `json:"hint,omitempty"` // what to do
}

// diagnosis is what was found.
type diagnosis struct {
	OK     bool    `json:"ok"` // no check failed
	Checks []check `json:"checks"`
}

// Bounds of checks.
const (
	certificateEnds = 30 * 24 * time.Hour // warned of before
	tokenEnds       = 7 * 24 * time.Hour
	clockDiffers    = 5 * time.Second
	clockWrong      = time.Minute
	backupOld       = 48 * time.Hour
)

// doctor makes the checks. It keeps what the service answered, by the name of the file in a bundle.
type doctor struct {
	c       *client.Client
	now     func() time.Time
	checks  []check
	answers map[string]any
}

func (d *doctor) add(name string, r result, hint, format string, args ...any) {
	d.checks = append(d.checks, check{name, r, fmt.Sprintf(format, args...), hint})
}

// refused adds a check that could not be made: it is skipped if the role may not see it or the service has no such part.
func (d *doctor) refused(name string, err error) {
	p, ok := errors.AsType[*v1.Problem](err)
	switch {
	case ok && p.Code == v1.CodeForbidden:
		d.add(name, resultSkipped, "", "the role of this credential may not see it")
	case ok && p.Status == http.StatusServiceUnavailable && p.Code == v1.CodeUnavailable:
		d.add(name, resultSkipped, p.Hint, "%v", err)
	case ok:
		d.add(name, resultFailed, p.Hint, "%v", err)
	default:
		d.add(name, resultFailed, "", "%v", err)
	}
}

// examine makes all checks, in an order in which a failure explains those after it.
func (d *doctor) examine(ctx context.Context) *diagnosis {
	if d.reach(ctx) && d.credential(ctx) {
		d.parts(ctx)
		ask(d, "version", func() (*v1.Version, error) { return d.c.Version(ctx) }, d.version)
		ask(d, "service-clock", func() (*v1.Clock, error) { return d.c.Clock().Get(ctx) }, d.serviceClock)
		ask(d, "subnet-manager", func() (*v1.SM, error) { return d.c.SM().Get(ctx) }, d.manager)
		ask(d, "brakes", func() (*v1.Brakes, error) { return d.c.Brakes().Get(ctx) }, d.brakes)
		ask(d, "backup", func() (*v1.List[v1.Backup], error) {
			items, err := d.c.Backups().List(ctx)
			return &v1.List[v1.Backup]{Items: items}, err
		}, d.backup)
		ask(d, "profile", func() (*v1.SecurityProfile, error) { return d.c.Profile(ctx, v1.ProfileQuery{}) }, d.profile)
	}
	out := &diagnosis{OK: true, Checks: d.checks}
	for _, c := range d.checks {
		out.OK = out.OK && c.Result != resultFailed
	}
	return out
}

// ask has the service answer, keeps the answer, and judges it.
func ask[T any](d *doctor, name string, get func() (*T, error), judge func(*T)) {
	answer, err := get()
	if err != nil {
		d.refused(name, err)
		return
	}
	d.answers[name+".json"] = answer
	judge(answer)
}

// reach connects without a credential: the way, the certificate and the clocks.
func (d *doctor) reach(ctx context.Context) bool {
	ch, err := d.c.OpenChannel(ctx)
	if err != nil {
		d.add("service", resultFailed, "check the address, the network, and the CA that is trusted (--ca)", "%v", err)
		return false
	}
	defer ch.Close()
	before := d.now()
	_, at, err := ch.Hello(ctx)
	if err != nil {
		d.add("service", resultFailed, "something else than Portcullis answers there", "%v", err)
		return false
	}
	d.add("service", resultOK, "", "it answers")
	d.certificate(ch.Certificate().NotAfter)
	d.clocks(before, at)
	return true
}

func (d *doctor) certificate(end time.Time) {
	switch left := end.Sub(d.now()); {
	case left <= 0:
		d.add("service-certificate", resultFailed, "renew it at the service: portcullisd certificate renew", "it ended at %s", cli.Stamp(end))
	case left < certificateEnds:
		d.add("service-certificate", resultWarning, "renew it at the service: portcullisd certificate renew", "it ends at %s", cli.Stamp(end))
	default:
		d.add("service-certificate", resultOK, "", "it is from a trusted CA, and ends at %s", cli.Stamp(end))
	}
}

// clocks compares the clock here with that of the service, which is in whole seconds.
func (d *doctor) clocks(here, there time.Time) {
	off := here.Truncate(time.Second).Sub(there)
	hint := "synchronize both clocks, by NTP for example"
	switch {
	case off.Abs() > clockWrong:
		d.add("clock", resultFailed, hint, "the clocks here and at the service differ by %v", off)
	case off.Abs() > clockDiffers:
		d.add("clock", resultWarning, hint, "the clocks here and at the service differ by %v", off)
	default:
		d.add("clock", resultOK, "", "the clocks here and at the service agree within %v", clockDiffers)
	}
}

// credential reports whether the service knows the credential.
func (d *doctor) credential(ctx context.Context) bool {
	who, err := d.c.WhoAmI(ctx)
	if err != nil {
		hint := "name the right token: --token-file, or portcullis login"
		if p, ok := errors.AsType[*v1.Problem](err); ok {
			hint = cmp.Or(p.Hint, hint)
		}
		d.add("credential", resultFailed, hint, "%v", err)
		return false
	}
	d.answers["credential.json"] = who
	detail := fmt.Sprintf("%s with the role %s", who.Name, who.Role)
	switch {
	case who.Expires == nil:
		d.add("credential", resultOK, "", "%s, without an end", detail)
	case who.Expires.Sub(d.now()) < tokenEnds && who.Method == "token":
		d.add("credential", resultWarning, "have a new token made", "%s, which ends at %s", detail, cli.Stamp(*who.Expires))
	default:
		d.add("credential", resultOK, "", "%s, which ends at %s", detail, cli.Stamp(*who.Expires))
	}
	return true
}

// parts says of each part of the service, such as its store, whether it does its job.
func (d *doctor) parts(ctx context.Context) {
	ask(d, "ready", func() (*v1.Readiness, error) { return d.c.Ready(ctx) }, func(r *v1.Readiness) {
		for _, c := range r.Checks {
			if c.OK {
				d.add("ready-"+c.Name, resultOK, "", "%s", cmp.Or(c.Detail, "it does its job"))
			} else {
				d.add("ready-"+c.Name, resultFailed, "see docs/operate/availability.md, and journalctl -u portcullisd at the service", "%s", cmp.Or(c.Detail, "it does not do its job"))
			}
		}
	})
}

func (d *doctor) version(v *v1.Version) {
	if own := version.Short(); v.Version != own {
		d.add("version", resultWarning, "install the same release at both", "the service is %s, and this program %s", v.Version, own)
		return
	}
	d.add("version", resultOK, "", "service and this program are %s", v.Version)
}

func (d *doctor) serviceClock(c *v1.Clock) {
	if c.State != "steady" {
		d.add("service-clock", resultFailed, "see portcullis clock show", "the service does not believe its clock: it is %s since %s, off by %s, and nothing new is granted", c.State, cli.Stamp(c.Since), c.Off)
		return
	}
	d.add("service-clock", resultOK, "", "the service believes its clock")
}

func (d *doctor) manager(s *v1.SM) {
	switch {
	case len(s.Instances) > 0 && s.Leader == "":
		d.add("subnet-manager", resultFailed, "see docs/operate/cluster.md", "none of %s leads", cli.Count(len(s.Instances), "instance"))
	case s.State != "Master":
		d.add("subnet-manager", resultFailed, "see portcullis sm show", "it is %s, not Master", cmp.Or(s.State, "not known"))
	case len(s.Problems) > 0:
		d.add("subnet-manager", resultWarning, "see portcullis sm show", "%s: %s", cli.Count(len(s.Problems), "problem"), s.Problems[0])
	case !s.Settled:
		d.add("subnet-manager", resultWarning, "wait, and see portcullis sm top if that lasts", "it is Master, and the fabric is not settled yet")
	case s.Leader != "":
		d.add("subnet-manager", resultOK, "", "it is Master at instance %s, and the fabric is settled", s.Leader)
	default:
		d.add("subnet-manager", resultOK, "", "it is Master, and the fabric is settled")
	}
}

func (d *doctor) brakes(b *v1.Brakes) {
	var engaged []string
	for _, i := range b.Items {
		if i.Engaged {
			engaged = append(engaged, fmt.Sprintf("%s (%s)", i.Class, cli.Count(i.Held, "host")))
		}
	}
	if len(engaged) > 0 {
		d.add("brakes", resultWarning, "find out the cause, then: portcullis admission brake release", "engaged: %s", strings.Join(engaged, ", "))
		return
	}
	d.add("brakes", resultOK, "", "none is engaged")
}

func (d *doctor) backup(list *v1.List[v1.Backup]) {
	hint := "portcullis backup create"
	var last time.Time
	for _, b := range list.Items {
		if b.Problem == "" && b.Time.After(last) {
			last = b.Time
		}
	}
	switch {
	case last.IsZero():
		d.add("backup", resultWarning, hint, "there is no whole backup")
	case d.now().Sub(last) > backupOld:
		d.add("backup", resultWarning, hint, "the last one is of %s", cli.Stamp(last))
	default:
		d.add("backup", resultOK, "", "the last one is of %s", cli.Stamp(last))
	}
}

// profile shows the rehearsal of the escrow kit, and what fails of the security profile.
func (d *doctor) profile(p *v1.SecurityProfile) {
	if i := slices.IndexFunc(p.Rules, func(r v1.ProfileFinding) bool { return r.Rule == "escrow-rehearsed" }); i >= 0 {
		switch r := &p.Rules[i]; r.State {
		case v1.RuleHolds:
			d.add("escrow", resultOK, "", "an escrow kit was rehearsed")
		case v1.RuleUnknown:
			d.add("escrow", resultSkipped, "", "it is not known here whether an escrow kit was rehearsed")
		default:
			d.add("escrow", resultWarning, r.Cure, "%s", r.Detail)
		}
	}
	if p.Count.Fails > 0 {
		d.add("profile", resultWarning, "portcullis profile check", "%s of the profile %s do not hold", cli.Count(p.Count.Fails, "rule"), p.Name)
		return
	}
	d.add("profile", resultOK, "", "no rule of the profile %s fails", p.Name)
}
