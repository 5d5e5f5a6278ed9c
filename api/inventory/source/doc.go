// Package source reads an inventory from the files that others write: rack manifests in JSON and CSV, and what shows how a
// fabric is cabled. All of them become one [inventory.Declaration] with the line of each fact.
//
// A fabric that was observed, and a file of static topology, do not say which host has an adapter: a host chooses the
// description that its adapter shows. So these declare switches and cables only, and cables only of ports that the
// inventory already has, by port GUID. Hosts come from manifests, or from YAML.
//
// Nothing in this package does I/O. All forms are bounded, and read strictly.
package source
