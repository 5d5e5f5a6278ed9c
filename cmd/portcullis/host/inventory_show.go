package host

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func inventoryShow(env *cli.Env) *cobra.Command {
	return cli.Group("show", "Show racks, switches, hosts, cables and stock of the inventory",
		showRacks(env), showRack(env), showSwitches(env), showSwitch(env), showHostCables(env), showCables(env), showSpares(env))
}

func showRacks(env *cli.Env) *cobra.Command {
	site := ""
	cmd := &cobra.Command{
		Use: "racks", Short: "List racks, and how much is in each", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			racks, err := c.Inventory().Racks(cmd.Context(), site)
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Rack]{Items: racks}, func(w *cli.Columns) {
				w.Row("RACK", "SITE", "ROOM", "UNITS", "SWITCHES", "HOSTS")
				for i := range racks {
					r := &racks[i]
					w.Row(r.ID, r.Site, r.Room, unless0(r.Units), strconv.Itoa(r.Switches), strconv.Itoa(r.Hosts))
				}
			})
		},
	}
	cmd.Flags().StringVar(&site, "site", "", "only racks of this site")
	return cmd
}

func showRack(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rack RACK", Short: "Show what stands in a rack, from the top to the bottom", Args: cli.Operands("RACK"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			r, err := c.Inventory().Rack(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.Print(r, func(w *cli.Columns) { rackTable(w, r) })
		},
	}
}

func rackTable(w *cli.Columns, r *v1.RackView) {
	w.Text("rack %s: site %s, room %s, %s units, %s, %s", r.ID, orNone(r.Site), orNone(r.Room), orNone(unless0(r.Units)), cli.Count(r.Switches, "switch"), cli.Count(r.Hosts, "host"))
	w.Gap()
	w.Row("UNITS", "SLOT", "KIND", "NAME", "MODEL", "ROLE", "CABLES")
	for i := range r.Devices {
		d := &r.Devices[i]
		units := unless0(d.Unit)
		if d.Height > 1 {
			units = fmt.Sprintf("%d-%d", d.Unit, d.Unit+d.Height-1)
		}
		role := d.Role
		if d.Spare {
			role = "spare"
		}
		w.Row(units, d.Slot, d.Kind, d.ID, d.Model, role, strconv.Itoa(d.Cables))
	}
}

func showSwitches(env *cli.Env) *cobra.Command {
	q := v1.SwitchQuery{}
	cmd := &cobra.Command{
		Use: "switches", Short: "List switches", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			list, err := c.Inventory().Switches(cmd.Context(), q)
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Switch]{Items: list}, func(w *cli.Columns) {
				w.Row("SWITCH", "GUID", "MODEL", "ROLE", "CABLES", "PORTS", "WHERE")
				for i := range list {
					s := &list[i]
					role := s.Role
					if s.Spare {
						role = "spare"
					}
					w.Row(s.ID, s.GUID.String(), s.Model, role, strconv.Itoa(s.Cables), unless0(s.Ports), s.Where)
				}
			})
		},
	}
	cmd.Flags().StringVar(&q.Rack, "rack", "", "only switches in this rack")
	cmd.Flags().Var(cli.OneOf(&q.Role, []string{"leaf", "spine", "core"}), "role", "only switches of this role: leaf, spine or core")
	return cmd
}

func showSwitch(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "switch SWITCH", Short: "Show a switch and its cables, by port", Args: cli.Operands("SWITCH"),
		Long: `Show a switch and its cables, by port. SWITCH is the name or the GUID of the switch.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			s, err := c.Inventory().Switch(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.Print(s, func(w *cli.Columns) {
				w.Text("switch %s: GUID %v, model %s, serial %s, %s", s.ID, s.GUID, orNone(s.Model), orNone(s.Serial), s.Where)
				w.Gap()
				cableTable(w, s.Cabled)
			})
		},
	}
}

func showCables(env *cli.Env) *cobra.Command {
	q := v1.CableQuery{}
	cmd := &cobra.Command{
		Use: "cables", Short: "List cables with both ends in physical terms", Args: cli.Operands(),
		Long: `List cables with both ends in physical terms. The options select cables; a cable is listed if it
meets all of them.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return listCables(cmd, env, q) },
	}
	f := cmd.Flags()
	f.StringVar(&q.Rack, "rack", "", "only cables with an end in this rack")
	f.StringVar(&q.Switch, "switch", "", "only cables with an end at this switch, by name or GUID")
	f.StringVar(&q.Host, "host", "", "only cables of this host")
	return cmd
}

func showHostCables(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "host HOST", Short: "List the cables of a host", Args: cli.Operands("HOST"),
		Long: `List the cables of a host with both ends in physical terms. "host show" has its adapters and where
the fabric sees them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return listCables(cmd, env, v1.CableQuery{Host: args[0]})
		},
	}
}

func listCables(cmd *cobra.Command, env *cli.Env, q v1.CableQuery) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	list, err := c.Inventory().Cables(cmd.Context(), q)
	if err != nil {
		return err
	}
	return env.Print(v1.List[v1.InventoryCable]{Items: list}, func(w *cli.Columns) { cableTable(w, list) })
}

func cableTable(w *cli.Columns, list []v1.InventoryCable) {
	w.Row("LABEL", "END", "OTHER END")
	for i := range list {
		w.Row(list[i].Label, list[i].A, list[i].B)
	}
}

func showSpares(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "spares", Short: "List switches, hosts and adapters in stock", Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			list, err := c.Inventory().Spares(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(v1.List[v1.Spare]{Items: list}, func(w *cli.Columns) {
				w.Row("KIND", "NAME", "MODEL", "SERIAL", "WHERE")
				for _, s := range list {
					w.Row(s.Kind, s.ID, s.Model, s.Serial, s.Where)
				}
			})
		},
	}
}

// unless0 returns a number in decimal, "" for 0.
func unless0(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func orNone(s string) string {
	if s == "" {
		return "not declared"
	}
	return s
}
