package login

import "golang.org/x/sys/unix"

func system() string {
	v, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		return "macOS"
	}
	return "macOS " + v
}
