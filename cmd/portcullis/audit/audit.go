package audit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api/audit/chain"
	v1 "portcullis/api/v1"
	"portcullis/attest/result/token"
	"portcullis/cmd/portcullis/cli"
)

func auditCommand(env *cli.Env) *cobra.Command {
	return cli.Group("audit", "Read, export and verify the audit log", auditList(env), auditShow(env), auditWatch(env), auditExport(env), auditVerify(env),
		auditHead(env), auditBreaks(env), auditAcceptBreak(env))
}

// auditFilter are the options that choose entries.
type auditFilter struct {
	q            v1.AuditQuery
	last         time.Duration
	since, until string
}

func (f *auditFilter) add(c *cobra.Command) {
	c.Flags().StringVar(&f.q.Actor, "actor", "", "only entries of this credential, or of agent:HOST, source:ADDRESS or service")
	c.Flags().StringVar(&f.q.Action, "action", "", "only this action; a name that ends in a dot, such as host., selects all that begin with it")
	c.Flags().StringVar(&f.q.Object, "object", "", "only entries about this object, such as host/compute-01")
	c.Flags().DurationVar(&f.last, "last", 0, "only entries of this last period, such as 24h")
	c.Flags().StringVar(&f.since, "since", "", "only entries from this time on, such as 2026-03-01T12:00:00Z")
	c.Flags().StringVar(&f.until, "until", "", "only entries before this time")
}

func (f *auditFilter) query() (v1.AuditQuery, error) {
	q := f.q
	if f.last < 0 {
		return q, &cli.UsageError{Msg: "--last is negative", Hint: "for example --last 24h"}
	}
	if f.last > 0 && f.since != "" {
		return q, &cli.UsageError{Msg: "--last and --since exclude each other", Hint: "use one of them"}
	}
	for _, t := range []struct {
		option, text string
		to           *time.Time
	}{{"--since", f.since, &q.Since}, {"--until", f.until, &q.Until}} {
		if t.text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, t.text)
		if err != nil {
			return q, &cli.UsageError{Msg: fmt.Sprintf("%s %q: want a time (RFC 3339)", t.option, t.text), Hint: "for example " + t.option + " 2026-03-01T12:00:00Z"}
		}
		*t.to = at
	}
	if f.last > 0 {
		q.Since = time.Now().Add(-f.last)
	}
	return q, nil
}

func auditList(env *cli.Env) *cobra.Command {
	var f auditFilter
	limit := 100
	c := &cobra.Command{
		Use: "list", Short: "List entries of the audit log, newest first", Args: cli.Operands(),
		Long: `List entries of the audit log, newest first: which actor did what to which object, what
was refused, what the service decided by itself, and the reason of the actor (--reason).`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.query()
			if err != nil {
				return err
			}
			if limit < 1 {
				return &cli.UsageError{Msg: fmt.Sprintf("--limit %d: want 1 or more", limit), Hint: "audit export writes all entries"}
			}
			q.Newest, q.Limit = true, min(limit, v1.MaxPage)
			c, err := env.Connect()
			if err != nil {
				return err
			}
			all := v1.AuditEntries{Items: []v1.AuditEntry{}}
			for page, err := range c.Audit().Entries(cmd.Context(), q) {
				if err != nil {
					return err
				}
				all.Head, all.Next = page.Head, page.Next
				all.Items = append(all.Items, page.Items[:min(len(page.Items), limit-len(all.Items))]...)
				if len(all.Items) == limit {
					break
				}
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("SEQ", "TIME", "ACTOR", "ACTION", "OBJECT", "CODE", "DETAIL", "REASON")
				for i := range all.Items {
					e := &all.Items[i]
					w.Row(strconv.FormatUint(e.Seq, 10), cli.Stamp(e.Time), e.Actor, e.Action, e.Object, e.Code, e.Detail, e.Reason)
				}
			})
		},
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", limit, "how many entries at most")
	return c
}

func auditHead(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "head", Short: "Print number and hash of the last entry, to be kept elsewhere", Args: cli.Operands(),
		Long: `Print number and hash of the last entry of the audit log as a line of JSON. Append it
regularly to a file on another machine. "portcullis audit verify --anchor FILE" then detects
a log that was rolled back or rewritten. If audit.anchors is configured, the service writes
such lines itself.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			var first v1.AuditEntry
			for page, err := range c.Audit().Entries(cmd.Context(), v1.AuditQuery{Limit: 1}) {
				if err != nil {
					return err
				}
				if len(page.Items) > 0 {
					first = page.Items[0]
				}
				break
			}
			head, err := c.Audit().Head(cmd.Context())
			if err != nil {
				return err
			}
			if head.Seq == 0 {
				return errors.New("the audit log has no entry yet")
			}
			return json.NewEncoder(env.Out).Encode(chain.Anchor{Time: time.Now().UTC(), Origin: first.Hash, Branch: head.Branch, Seq: head.Seq, Hash: head.Hash})
		},
	}
}

// auditVerdict is what is printed of a log that was verified.
type auditVerdict struct {
	Entries uint64     `json:"entries"`
	Head    chain.Head `json:"head"`
	Anchors int        `json:"anchors"`
	// Superseded are anchors from before an operator accepted a state that was rolled back. Their entries are gone.
	Superseded int  `json:"superseded"`
	Accepted   int  `json:"accepted"` // breaks that operators accepted
	Signed     bool `json:"signed"`   // each of the anchors was signed by one of the keys
}

func auditVerify(env *cli.Env) *cobra.Command {
	log, keys := "", ""
	var anchors []string
	c := &cobra.Command{
		Use: "verify", Short: "Verify that the audit log is complete and has all anchored entries", Args: cli.Operands(),
		Long: `Verify the audit log on this machine: each entry has the hash of the one before it, and
none is missing or altered, except for breaks that an operator accepted in the log itself (audit accept-break).

--anchor FILE compares the log with anchors: heads of the log that were recorded elsewhere,
by the service (audit.anchors in its configuration) or by portcullis audit head. A log without
one of these entries was rolled back or rewritten. FILE has one JSON object on each line. A
line of a system log may have it after "portcullis-anchor ": grep portcullis-anchor.
--keys JWKS requires that one of these keys signed each anchor (portcullis result keys --jwks).
--log FILE verifies an export instead of the service's log.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			known, err := chain.ReadAnchorFiles(anchors)
			if err == nil && keys != "" {
				err = verifySigned(env, known, keys)
			}
			if err != nil {
				return err
			}
			k := chain.Check{Anchors: known}
			var l chain.Log
			add := func(e *chain.Entry) error {
				fits, err := l.Add(e.Seq, e)
				if fits {
					k.Add(e)
				}
				return err
			}
			if log != "" {
				err = readLog(log, add)
			} else {
				err = serviceLog(env, cmd, &l, add)
			}
			if open := l.Open(); err == nil && open != nil {
				err = open
			}
			if err == nil {
				err = k.End(l.Head())
			}
			if err != nil {
				return cli.Hint(err, "keep this state and the anchors unchanged, and find out which of them was altered: see docs/operate/audit.md")
			}
			v := auditVerdict{
				Entries: l.Head().Seq, Head: l.Head(), Anchors: len(known), Superseded: k.Superseded(l.Head()), Signed: keys != "" && len(known) > 0,
				Accepted: len(l.Accepted()),
			}
			return env.Print(v, func(w *cli.Columns) {
				if v.Accepted > 0 {
					w.Text("the audit log has %d breaks, which operators accepted (portcullis audit list --action %s), and is otherwise complete: %d entries, the last has hash %s",
						v.Accepted, chain.AcceptAction, v.Entries, v.Head.Hash)
				} else {
					w.Text("the audit log is complete: %d entries, the last has hash %s", v.Entries, v.Head.Hash)
				}
				switch {
				case v.Superseded > 0:
					w.Text("%d of %d anchored heads are in it; the others are older than a rollback that an operator accepted: portcullis audit list --action %s",
						v.Anchors-v.Superseded, v.Anchors, chain.BranchAction)
				case v.Anchors > 0:
					w.Text("all %d anchored heads are in it", v.Anchors)
				}
				if v.Signed {
					w.Text("each of them is signed by one of the keys")
				}
			})
		},
	}
	c.Flags().StringVar(&log, "log", "", "file of audit export, instead of the service")
	c.Flags().StringArrayVar(&anchors, "anchor", nil, "file of anchored heads; may be given more than once")
	c.Flags().StringVar(&keys, "keys", "", "JWK Set of the service; one of its keys must have signed each anchored head")
	return c
}

// verifySigned wants each anchor signed by one of the keys in a file.
func verifySigned(env *cli.Env, list []chain.Anchor, file string) error {
	set, err := cli.ReadBounded(env.In, file, token.MaxKeysSet)
	if err != nil {
		return err
	}
	keys, err := token.ParseKeys(set)
	if err != nil {
		return cli.Hint(fmt.Errorf("%s: %w", file, err), "want the content of /.well-known/jwks.json of the service: portcullis result keys --jwks")
	}
	for i := range list {
		content, err := list[i].Content()
		if err == nil {
			_, err = token.VerifyAnchor(content, list[i].JWS, keys)
		}
		if err != nil {
			return cli.Hint(fmt.Errorf("the anchor of audit entry %d, of %s: %w", list[i].Seq, list[i].Time.Format(time.RFC3339), err),
				"the anchor may be forged; after a key rotation, keep the earlier key sets and verify older anchors with them")
		}
	}
	return nil
}

// serviceLog calls add with the entries of the service.
func serviceLog(env *cli.Env, cmd *cobra.Command, l *chain.Log, add func(*chain.Entry) error) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	var head v1.AuditHead
	for page, err := range c.Audit().Entries(cmd.Context(), v1.AuditQuery{Limit: v1.MaxPage}) {
		if err != nil {
			return err
		}
		for i := range page.Items {
			if err := add((*chain.Entry)(&page.Items[i])); err != nil {
				return err
			}
		}
		head = page.Head
	}
	if l.Head().Seq <= head.Seq { // else entries came while the last page was on its way
		l.End(chain.Head(head))
	}
	return nil
}

// maxEntry bounds a line of an exported log, in bytes.
const maxEntry = 1 << 20

func readLog(name string, add func(*chain.Entry) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxEntry)
	for n := 1; lines.Scan(); n++ {
		var e chain.Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s:%d: not an entry of the audit log: %w", name, n, err)
		}
		if err := add(&e); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}
