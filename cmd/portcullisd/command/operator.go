package command

import (
	"fmt"
	"os"
	"os/user"
)

// OperatorHere names the person for the audit log as far as this machine knows it.
func OperatorHere() string {
	if who := os.Getenv("SUDO_USER"); who != "" {
		return "local:" + who
	}
	if u, err := user.Current(); err == nil {
		return "local:" + u.Username
	}
	return fmt.Sprintf("local:%d", os.Getuid())
}
