// Package fwctl sends commands to an adapter's firmware through the kernel's fwctl interface (Linux 6.15 and later, module
// mlx5_fwctl), or to a simulated adapter through a unix socket that carries the same commands.
//
// Sources: Linux include/uapi/fwctl/fwctl.h and drivers/fwctl/mlx5/main.c. The interface works under kernel lockdown and
// belongs to one adapter. It needs neither root, nor a capability, nor access to PCI configuration space: a process that
// may open the node may do everything that this package does. (Only the scope "debug write full", which it never uses,
// takes CAP_SYS_RAWIO.)
package fwctl
