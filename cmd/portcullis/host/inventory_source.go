package host

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// maxFiles bounds the bytes of one import; the service refuses more.
const maxFiles = 24 << 20

// maxSignature bounds a file of a signature, in bytes.
const maxSignature = 1 << 10

// Forms of files, as the service calls them.
const (
	formYAML     = "yaml"
	formManifest = "manifest" // JSON
	formCSV      = "csv"      // a manifest
	formNDT      = "ndt"
	formGUIDs    = "guids" // of the devices in plans
)

// forms lists what --form takes, the default first.
func forms() []string {
	return []string{formYAML, formManifest, formCSV, formNDT, "topoconf", "ibnetdiscover", "ufm", "netbox"}
}

// sources are the files of an import and their form.
type sources struct{ form, guids string }

func (s *sources) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.form, "form", formYAML, "form of the files: "+strings.Join(forms(), ", "))
	cmd.Flags().StringVar(&s.guids, "guids", "", "CSV file with names and GUIDs of the devices in plans of NDT (--form ndt)")
}

// read reads the named files; "-" is standard input. A manifest has its signature in a file beside it.
func (s *sources) read(env *cli.Env, names []string) ([]v1.InventoryFile, error) {
	switch {
	case !slices.Contains(forms(), s.form):
		return nil, &cli.UsageError{Msg: "--form " + s.form + " is unknown", Hint: "want one of " + strings.Join(forms(), ", ")}
	case (s.guids != "") != (s.form == formNDT):
		return nil, &cli.UsageError{Msg: "--guids belongs to --form ndt: plans name devices, and its file has their GUIDs", Hint: "name both, or none"}
	}
	left := int64(maxFiles)
	read := func(name, form string) (v1.InventoryFile, error) {
		data, err := env.ReadFile(name, left)
		left -= int64(len(data))
		if form == formYAML {
			form = "" // a service before forms were known takes YAML, and refuses a property that it does not know
		}
		return v1.InventoryFile{Name: name, Content: string(data), Form: form}, err
	}
	var files []v1.InventoryFile
	for _, name := range names {
		f, err := read(name, s.form)
		if err != nil {
			return nil, err
		}
		if f.Signature, err = s.signature(env, name); err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	if s.guids == "" {
		return files, nil
	}
	f, err := read(s.guids, formGUIDs)
	return append(files, f), err
}

// signature reads the signature beside a manifest; none is for the service to refuse.
func (s *sources) signature(env *cli.Env, name string) ([]byte, error) {
	if name == "-" || s.form != formManifest && s.form != formCSV {
		return nil, nil
	}
	sig, err := env.ReadFile(name+".sig", maxSignature)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return sig, err
}
