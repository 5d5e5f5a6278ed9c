// Judge reads an expression of PromQL on each line as Prometheus does, in JSON, and prints what it uses: selectors with their
// matchers, the labels that it groups or joins by, and the functions that selectors are arguments of.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// selector is a selector of an expression.
type selector struct {
	Name     string
	Matchers map[string]string // text of the matcher by label
	Range    bool
	Function string // that the selector is an argument of
}

// use is what an expression uses.
type use struct {
	Selectors []selector
	Labels    []string // that it groups or joins by
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var text string
		if err := json.Unmarshal(in.Bytes(), &text); err != nil {
			fail(err)
		}
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			fail(fmt.Errorf("%s: %w", text, err))
		}
		var u use
		parser.Inspect(expr, func(n parser.Node, path []parser.Node) error {
			u.take(n, path)
			return nil
		})
		if err := out.Encode(u); err != nil {
			fail(err)
		}
	}
}

func (u *use) take(n parser.Node, path []parser.Node) {
	switch n := n.(type) {
	case *parser.VectorSelector:
		s := selector{Name: n.Name, Matchers: map[string]string{}}
		for _, m := range n.LabelMatchers {
			if m.Name != labels.MetricName {
				s.Matchers[m.Name] = m.Type.String() + m.Value
			}
		}
		for i := len(path) - 1; i >= 0; i-- {
			if _, ok := path[i].(*parser.MatrixSelector); ok {
				s.Range = true
			}
			if c, ok := path[i].(*parser.Call); ok {
				s.Function = c.Func.Name
				break
			}
		}
		u.Selectors = append(u.Selectors, s)
	case *parser.AggregateExpr:
		u.Labels = append(u.Labels, n.Grouping...)
	case *parser.BinaryExpr:
		if m := n.VectorMatching; m != nil {
			u.Labels = append(append(u.Labels, m.MatchingLabels...), m.Include...)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
