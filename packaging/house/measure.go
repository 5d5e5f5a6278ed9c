package main

import (
	"errors"
	"fmt"
	"go/types"
	"path/filepath"
	"strings"

	"golang.org/x/tools/go/packages"
)

// sizes are those of the project's parts, by name: "fabricsm/sm.Core" is a type, "fabricsm/sm" a package.
type sizes struct {
	methods map[string]int
	lines   map[string]int
	circles map[string]int // arrows in circles, by package
}

const module = "portcullis/"

// measure loads packages and returns their sizes.
func measure(patterns ...string) (sizes, error) {
	const mode = packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports
	loaded, err := packages.Load(&packages.Config{Mode: mode}, patterns...)
	if err != nil {
		return sizes{}, fmt.Errorf("load packages: %w", err)
	}
	s := sizes{map[string]int{}, map[string]int{}, map[string]int{}}
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return sizes{}, fmt.Errorf("%s: %w", p.PkgPath, p.Errors[0])
		}
		s.add(p)
	}
	if len(s.lines) == 0 {
		return sizes{}, errors.New("there are no packages")
	}
	return s, nil
}

func (s *sizes) add(p *packages.Package) {
	name := strings.TrimPrefix(p.PkgPath, module)
	for _, file := range p.Syntax {
		s.lines[name] += p.Fset.File(file.Pos()).LineCount()
	}
	for _, object := range p.Types.Scope().Names() {
		named, ok := p.Types.Scope().Lookup(object).Type().(*types.Named)
		if _, isType := p.Types.Scope().Lookup(object).(*types.TypeName); ok && isType && named.NumMethods() > 0 {
			s.methods[name+"."+object] = named.NumMethods()
		}
	}
	if n := circles(arrows(p)); n > 0 {
		s.circles[name] = n
	}
}

// arrows returns, of each file of a package, the files of which it uses a declaration.
func arrows(p *packages.Package) map[string]map[string]bool {
	file := func(o types.Object) string { return filepath.Base(p.Fset.Position(o.Pos()).Filename) }
	out := map[string]map[string]bool{}
	for identifier, object := range p.TypesInfo.Uses {
		if object.Pkg() != p.Types || !declared(p, object) {
			continue
		}
		from, to := filepath.Base(p.Fset.Position(identifier.Pos()).Filename), file(object)
		if from == to {
			continue
		}
		if out[from] == nil {
			out[from] = map[string]bool{}
		}
		out[from][to] = true
	}
	return out
}

// declared reports whether an object is a declaration of the package: not a field, a parameter or a local variable.
func declared(p *packages.Package, o types.Object) bool {
	if f, ok := o.(*types.Func); ok {
		return f.Signature().Recv() != nil || f.Parent() == p.Types.Scope()
	}
	return o.Parent() == p.Types.Scope()
}

// circles returns how many arrows are part of a circle: from a file to one that leads back to it.
func circles(from map[string]map[string]bool) int {
	n := 0
	for a, targets := range from {
		for b := range targets {
			if leads(from, b, a, map[string]bool{}) {
				n++
			}
		}
	}
	return n
}

// leads reports whether arrows lead from one file to another.
func leads(arrows map[string]map[string]bool, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for next := range arrows[from] {
		if !seen[next] && leads(arrows, next, to, seen) {
			return true
		}
	}
	return false
}

// large returns what is larger than it may be, as known.txt has it.
func (s *sizes) large() map[string]int {
	out := map[string]int{}
	for name, n := range s.methods {
		if n > mostMethods {
			out["type "+name] = n
		}
	}
	for name, n := range s.lines {
		if n > mostLines {
			out["package "+name] = n
		}
	}
	return out
}
