package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/api/label"
)

// selector is an option that is a selector.
type selector struct{ text *string }

// Set takes a selector that is well formed.
func (s selector) Set(text string) error {
	if _, err := label.Parse(text); err != nil {
		return fmt.Errorf("%w; for example env=prod,tier in (a,b),!gpu", err)
	}
	*s.text = text
	return nil
}

func (s selector) String() string { return *s.text }

// Type names the value in help texts.
func (selector) Type() string { return "SELECTOR" }

// SelectorFlag adds the option that chooses objects by their labels; usage is its help text.
func SelectorFlag(cmd *cobra.Command, text *string, usage string) {
	cmd.Flags().VarP(selector{text}, "selector", "l", usage)
}

// LabelColumn is the option of a list to show labels.
type LabelColumn struct{ show bool }

// Register adds the option to a command.
func (c *LabelColumn) Register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.show, "show-labels", false, "show the labels in the last column")
}

// Head returns the cells of a table's first row, with that of labels if they are shown.
func (c *LabelColumn) Head(cells ...string) []string {
	if c.show {
		cells = append(cells, "LABELS")
	}
	return cells
}

// Cells returns the cells of an object, with its labels if they are shown.
func (c *LabelColumn) Cells(labels map[string]string, cells ...string) []string {
	if c.show {
		cells = append(cells, label.Set(labels).String())
	}
	return cells
}

// LabelRow shows the labels of one object, if it has any.
func LabelRow(w *Columns, labels map[string]string) {
	if len(labels) > 0 {
		w.Row("Labels", label.Set(labels).String())
	}
}

// labelFlag collects labels of an object to be created.
type labelFlag struct{ to *map[string]string }

// Set takes KEY=VALUE.
func (f labelFlag) Set(text string) error {
	key, value, ok := strings.Cut(text, "=")
	if !ok {
		return errors.New("want KEY=VALUE")
	}
	if *f.to == nil {
		*f.to = map[string]string{}
	}
	if _, twice := (*f.to)[key]; twice {
		return fmt.Errorf("label %s is named twice", key)
	}
	(*f.to)[key] = value
	return label.Set(*f.to).Check()
}

func (f labelFlag) String() string { return label.Set(*f.to).String() }

// Type names the value in help texts.
func (labelFlag) Type() string { return "KEY=VALUE" }

// LabelFlag adds the option for the labels of an object to be created.
func LabelFlag(cmd *cobra.Command, labels *map[string]string) {
	cmd.Flags().Var(labelFlag{labels}, "label", "label that it has; may be given more than once")
}
