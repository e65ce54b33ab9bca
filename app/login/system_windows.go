package login

import (
	"fmt"

	"golang.org/x/sys/windows"
)

func system() string {
	v := windows.RtlGetVersion()
	name := "Windows"
	switch {
	case v.MajorVersion == 10 && v.BuildNumber >= 22000:
		name = "Windows 11"
	case v.MajorVersion == 10:
		name = "Windows 10"
	}
	return fmt.Sprintf("%s (build %d)", name, v.BuildNumber)
}
