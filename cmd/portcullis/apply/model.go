package apply

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api/clustername"
	"portcullis/api/label"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/hostrange"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/strictyaml"
)

// Kinds of documents.
const (
	kindTenant     = "Tenant"
	kindCluster    = "Cluster"
	kindAssignment = "Assignment"
)

type tenantDoc struct {
	Kind  string    `yaml:"kind"`
	Name  string    `yaml:"name"`
	PKeys []string  `yaml:"p_keys"`
	Quota *quotaDoc `yaml:"quota"`

	Labels map[string]string `yaml:"labels"`
}

type quotaDoc struct {
	Hosts    *string `yaml:"hosts"`
	Clusters *string `yaml:"clusters"`
	PKeys    *string `yaml:"p_keys"`
}

type clusterDoc struct {
	Kind   string   `yaml:"kind"`
	Name   string   `yaml:"name"`
	Tenant string   `yaml:"tenant"`
	Shared bool     `yaml:"shared"`
	Uses   []string `yaml:"uses"`
	PKey   *ib.PKey `yaml:"p_key"`

	Labels map[string]string `yaml:"labels"`
}

type assignmentDoc struct {
	Kind    string        `yaml:"kind"`
	Cluster string        `yaml:"cluster"`
	Hosts   []string      `yaml:"hosts"`
	Window  time.Duration `yaml:"window"`

	Labels map[string]string `yaml:"labels"` // of the hosts
}

// model is what files declare, with the place of each object in them.
type model struct {
	wanted v1.Wanted
	places map[string]string // "FILE: line N", by object as plans name it
	refs   map[string]string // where a cluster is named that others declare
	errs   []error
	hosts  int
}

func newModel() *model { return &model{places: map[string]string{}, refs: map[string]string{}} }

func (m *model) err() error { return errors.Join(m.errs...) }

// mistake notes one of a document.
func (m *model) mistake(place, format string, args ...any) {
	m.errs = append(m.errs, fmt.Errorf("%s: "+format, append([]any{place}, args...)...))
}

func placeOf(file string, line int) string { return fmt.Sprintf("%s: line %d", file, line) }

// load reads the documents of a file.
func (m *model) load(file string, data []byte) {
	docs, err := strictyaml.Documents(file, data, maxFile, maxDocuments)
	if err != nil {
		m.errs = append(m.errs, err)
		return
	}
	for _, doc := range docs {
		m.document(file, doc)
	}
}

// document reads one document. Its kind says which keys it may have.
func (m *model) document(file string, doc *yaml.Node) {
	at := func(path ...string) string { return placeOf(file, max(strictyaml.LineOf(doc, path...), doc.Line)) }
	var kind string
	if doc.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(doc.Content); i += 2 {
			if doc.Content[i].Value == "kind" {
				kind = doc.Content[i+1].Value
			}
		}
	}
	switch kind {
	case kindTenant:
		fill(m, file, doc, func(d *tenantDoc) { m.tenant(d, at) })
	case kindCluster:
		fill(m, file, doc, func(d *clusterDoc) { m.cluster(d, at) })
	case kindAssignment:
		fill(m, file, doc, func(d *assignmentDoc) { m.assignment(d, at) })
	case "":
		m.mistake(at(), "the document has no kind: want kind: Tenant, Cluster or Assignment")
	default:
		m.mistake(at("kind"), "kind %q is not known: want Tenant, Cluster or Assignment", kind)
	}
}

// fill reads a document strictly, and hands it on.
func fill[T any](m *model, file string, doc *yaml.Node, then func(*T)) {
	var d T
	if err := strictyaml.Fill(file, doc, &d); err != nil {
		m.errs = append(m.errs, err)
		return
	}
	then(&d)
}

const nameHint = "want " + clustername.LabelForm

// place notes where an object is declared, and reports whether it is for the first time.
func (m *model) place(object, at string) bool {
	if first := m.places[object]; first != "" {
		m.mistake(at, "%s is declared at %s already", object, first)
		return false
	}
	m.places[object] = at
	return true
}

// named checks the names of a document.
func (m *model) named(kind, key, name string, at func(...string) string) bool {
	switch {
	case name == "":
		m.mistake(at(), "the %s has no %s", kind, key)
	case !clustername.IsLabel(name):
		m.mistake(at(key), "%s %q: %s", key, name, nameHint)
	default:
		return true
	}
	return false
}

// clusterNamed checks the name of a cluster in a document.
func (m *model) clusterNamed(kind, key, text string, at func(...string) string) (clustername.Name, bool) {
	if text == "" {
		m.mistake(at(), "the %s has no %s", kind, key)
		return clustername.Name{}, false
	}
	name, err := clustername.Parse(text)
	if err != nil {
		m.mistake(at(key), "%s %q: %v", key, text, err)
	}
	return name, err == nil
}

func (m *model) tenant(d *tenantDoc, at func(...string) string) {
	if !m.named(kindTenant, "name", d.Name, at) || !m.place("tenant/"+d.Name, at("name")) {
		return
	}
	for i, text := range d.PKeys {
		if _, err := ib.ParsePKeyRange(text); err != nil {
			m.mistake(at("p_keys", strconv.Itoa(i)), "range of P_Keys %q: %v", text, err)
		}
	}
	m.labels(d.Labels, at)
	t := v1.WantedTenant{Name: d.Name, PKeys: d.PKeys, Labels: d.Labels}
	if q := d.Quota; q != nil {
		t.Quota = &v1.WantedQuota{
			Hosts: m.bound(q.Hosts, at("quota", "hosts")), Clusters: m.bound(q.Clusters, at("quota", "clusters")), PKeys: m.bound(q.PKeys, at("quota", "p_keys")),
		}
	}
	m.wanted.Tenants = append(m.wanted.Tenants, t)
}

// labels checks the labels of a document.
func (m *model) labels(labels label.Set, at func(...string) string) {
	if err := labels.Check(); err != nil {
		m.mistake(at("labels"), "%v", err)
	}
}

// maxBound is the highest number of a quota.
const maxBound = 1_000_000

// bound reads a number of a quota; nil: none is declared.
func (m *model) bound(text *string, at string) *int {
	if text == nil {
		return nil
	}
	if *text == "unlimited" {
		return new(v1.Unlimited)
	}
	n, err := strconv.ParseUint(*text, 10, 31)
	if err != nil || n > maxBound {
		m.mistake(at, "quota %q: want a number from 0 to %d, or unlimited", *text, maxBound)
	}
	return new(int(n))
}

func (m *model) cluster(d *clusterDoc, at func(...string) string) {
	name, ok := m.clusterNamed(kindCluster, "name", d.Name, at)
	if ok && name.Tenant != "" && d.Tenant == "" {
		d.Tenant = name.Tenant
	}
	if !ok || !m.named(kindCluster, "tenant", d.Tenant, at) || !m.place("cluster/"+d.Name, at("name")) {
		return
	}
	if name.Tenant != "" && name.Tenant != d.Tenant {
		m.mistake(at("tenant"), "the name %s is for a cluster of tenant %s, and its tenant is %s", d.Name, name.Tenant, d.Tenant)
	}
	for i, s := range d.Uses {
		if _, err := clustername.Parse(s); err != nil {
			m.mistake(at("uses", strconv.Itoa(i)), "cluster %q: %v", s, err)
		}
	}
	m.labels(d.Labels, at)
	m.wanted.Clusters = append(m.wanted.Clusters, v1.WantedCluster{
		Name: d.Name, Tenant: d.Tenant, Shared: d.Shared, Uses: d.Uses, PKey: d.PKey, Labels: d.Labels,
	})
}

// Bounds of the provisioning window of a host.
const (
	minWindow = time.Minute
	maxWindow = 24 * time.Hour
)

func (m *model) assignment(d *assignmentDoc, at func(...string) string) {
	if _, ok := m.clusterNamed(kindAssignment, "cluster", d.Cluster, at); !ok {
		return
	}
	if d.Window != 0 && (d.Window < minWindow || d.Window > maxWindow || d.Window%time.Second != 0) {
		m.mistake(at("window"), "window %v: want whole seconds from %v to %v", d.Window, minWindow, maxWindow)
	}
	if len(d.Hosts) == 0 {
		m.mistake(at("hosts"), "the Assignment to cluster %s names no hosts", d.Cluster)
		return
	}
	if ref := "cluster/" + d.Cluster; m.refs[ref] == "" {
		m.refs[ref] = at("cluster")
	}
	if m.hosts > hostrange.Most {
		return // that is said; to expand the ranges of each document after it would take hours
	}
	m.labels(d.Labels, at)
	a := v1.WantedAssignment{Cluster: d.Cluster, Window: int(d.Window / time.Second), Labels: d.Labels}
	for i, operand := range d.Hosts {
		where := at("hosts", strconv.Itoa(i))
		ids, err := hostrange.Expand([]string{operand})
		if err != nil {
			m.mistake(where, "%v", err)
			continue
		}
		if m.hosts += len(ids); m.hosts > hostrange.Most {
			m.mistake(where, "the files name more than %d hosts", hostrange.Most)
			return
		}
		for _, id := range ids {
			if m.place("host/"+id, where) {
				a.Hosts = append(a.Hosts, id)
			}
		}
	}
	m.wanted.Assignments = append(m.wanted.Assignments, a)
}
