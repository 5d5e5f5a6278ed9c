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

	"portcullis/agent/checklist"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullis/cli"
)

// diagnosis is what was found.
type diagnosis struct {
	OK     bool           `json:"ok"` // no check failed
	Checks checklist.List `json:"checks"`
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
	checks  checklist.List
	answers map[string]any
}

// refused adds a check that could not be made: it is skipped if the role may not see it or the service has no such part.
func (d *doctor) refused(name string, err error) {
	p, ok := errors.AsType[*v1.Problem](err)
	switch {
	case ok && p.Code == v1.CodeForbidden:
		d.checks.Add(name, checklist.Skipped, "", "the role of this credential may not see it")
	case ok && p.Status == http.StatusServiceUnavailable && p.Code == v1.CodeUnavailable:
		d.checks.Add(name, checklist.Skipped, p.Hint, "%v", err)
	case ok:
		d.checks.Add(name, checklist.Failed, p.Hint, "%v", err)
	default:
		d.checks.Add(name, checklist.Failed, "", "%v", err)
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
	return &diagnosis{OK: d.checks.Failed() == nil, Checks: d.checks}
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
		d.checks.Add("service", checklist.Failed, "check the address, the network, and the CA that is trusted (--ca)", "%v", err)
		return false
	}
	defer ch.Close()
	before := d.now()
	_, at, err := ch.Hello(ctx)
	if err != nil {
		d.checks.Add("service", checklist.Failed, "something else than Portcullis answers there", "%v", err)
		return false
	}
	d.checks.Add("service", checklist.OK, "", "it answers")
	d.certificate(ch.Certificate().NotAfter)
	d.clocks(before, at)
	return true
}

func (d *doctor) certificate(end time.Time) {
	switch left := end.Sub(d.now()); {
	case left <= 0:
		d.checks.Add("service-certificate", checklist.Failed, "renew it at the service: portcullisd certificate renew", "it ended at %s", cli.Stamp(end))
	case left < certificateEnds:
		d.checks.Add("service-certificate", checklist.Warning, "renew it at the service: portcullisd certificate renew", "it ends at %s", cli.Stamp(end))
	default:
		d.checks.Add("service-certificate", checklist.OK, "", "it is from a trusted CA, and ends at %s", cli.Stamp(end))
	}
}

// clocks compares the clock here with that of the service, which is in whole seconds.
func (d *doctor) clocks(here, there time.Time) {
	off := here.Truncate(time.Second).Sub(there)
	hint := "synchronize both clocks, by NTP for example"
	switch {
	case off.Abs() > clockWrong:
		d.checks.Add("clock", checklist.Failed, hint, "the clocks here and at the service differ by %v", off)
	case off.Abs() > clockDiffers:
		d.checks.Add("clock", checklist.Warning, hint, "the clocks here and at the service differ by %v", off)
	default:
		d.checks.Add("clock", checklist.OK, "", "the clocks here and at the service agree within %v", clockDiffers)
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
		d.checks.Add("credential", checklist.Failed, hint, "%v", err)
		return false
	}
	d.answers["credential.json"] = who
	detail := fmt.Sprintf("%s with the role %s", who.Name, who.Role)
	switch {
	case who.Expires == nil:
		d.checks.Add("credential", checklist.OK, "", "%s, without an end", detail)
	case who.Expires.Sub(d.now()) < tokenEnds && who.Method == "token":
		d.checks.Add("credential", checklist.Warning, "have a new token made", "%s, which ends at %s", detail, cli.Stamp(*who.Expires))
	default:
		d.checks.Add("credential", checklist.OK, "", "%s, which ends at %s", detail, cli.Stamp(*who.Expires))
	}
	return true
}

// parts says of each part of the service, such as its store, whether it does its job.
func (d *doctor) parts(ctx context.Context) {
	ask(d, "ready", func() (*v1.Readiness, error) { return d.c.Ready(ctx) }, func(r *v1.Readiness) {
		for _, c := range r.Checks {
			if c.OK {
				d.checks.Add("ready-"+c.Name, checklist.OK, "", "%s", cmp.Or(c.Detail, "it does its job"))
			} else {
				d.checks.Add("ready-"+c.Name, checklist.Failed, "see docs/operate/availability.md, and journalctl -u portcullisd at the service", "%s", cmp.Or(c.Detail, "it does not do its job"))
			}
		}
	})
}

func (d *doctor) version(v *v1.Version) {
	if own := version.Short(); v.Version != own {
		d.checks.Add("version", checklist.Warning, "install the same release at both", "the service is %s, and this program %s", v.Version, own)
		return
	}
	d.checks.Add("version", checklist.OK, "", "service and this program are %s", v.Version)
}

func (d *doctor) serviceClock(c *v1.Clock) {
	if c.State != "steady" {
		d.checks.Add("service-clock", checklist.Failed, "see portcullis clock show", "the service does not believe its clock: it is %s since %s, off by %s, and nothing new is granted", c.State, cli.Stamp(c.Since), c.Off)
		return
	}
	d.checks.Add("service-clock", checklist.OK, "", "the service believes its clock")
}

func (d *doctor) manager(s *v1.SM) {
	switch {
	case len(s.Instances) > 0 && s.Leader == "":
		d.checks.Add("subnet-manager", checklist.Failed, "see docs/operate/cluster.md", "none of %s leads", cli.Count(len(s.Instances), "instance"))
	case s.State != "Master":
		d.checks.Add("subnet-manager", checklist.Failed, "see portcullis sm show", "it is %s, not Master", cmp.Or(s.State, "not known"))
	case len(s.Problems) > 0:
		d.checks.Add("subnet-manager", checklist.Warning, "see portcullis sm show", "%s: %s", cli.Count(len(s.Problems), "problem"), s.Problems[0])
	case !s.Settled:
		d.checks.Add("subnet-manager", checklist.Warning, "wait, and see portcullis sm top if that lasts", "it is Master, and the fabric is not settled yet")
	case s.Leader != "":
		d.checks.Add("subnet-manager", checklist.OK, "", "it is Master at instance %s, and the fabric is settled", s.Leader)
	default:
		d.checks.Add("subnet-manager", checklist.OK, "", "it is Master, and the fabric is settled")
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
		d.checks.Add("brakes", checklist.Warning, "find out the cause, then: portcullis admission brake release", "engaged: %s", strings.Join(engaged, ", "))
		return
	}
	d.checks.Add("brakes", checklist.OK, "", "none is engaged")
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
		d.checks.Add("backup", checklist.Warning, hint, "there is no whole backup")
	case d.now().Sub(last) > backupOld:
		d.checks.Add("backup", checklist.Warning, hint, "the last one is of %s", cli.Stamp(last))
	default:
		d.checks.Add("backup", checklist.OK, "", "the last one is of %s", cli.Stamp(last))
	}
}

// profile shows the rehearsal of the escrow kit, and what fails of the security profile.
func (d *doctor) profile(p *v1.SecurityProfile) {
	if i := slices.IndexFunc(p.Rules, func(r v1.ProfileFinding) bool { return r.Rule == "escrow-rehearsed" }); i >= 0 {
		switch r := &p.Rules[i]; r.State {
		case v1.RuleHolds:
			d.checks.Add("escrow", checklist.OK, "", "an escrow kit was rehearsed")
		case v1.RuleUnknown:
			d.checks.Add("escrow", checklist.Skipped, "", "it is not known here whether an escrow kit was rehearsed")
		default:
			d.checks.Add("escrow", checklist.Warning, r.Cure, "%s", r.Detail)
		}
	}
	if p.Count.Fails > 0 {
		d.checks.Add("profile", checklist.Warning, "portcullis profile check", "%s of the profile %s do not hold", cli.Count(p.Count.Fails, "rule"), p.Name)
		return
	}
	d.checks.Add("profile", checklist.OK, "", "no rule of the profile %s fails", p.Name)
}
