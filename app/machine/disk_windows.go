package machine

import "golang.org/x/sys/windows"

// freeDisk is how much a person's programs can still write where a folder is.
func freeDisk(folder string) (free, total int64, known bool) {
	name, err := windows.UTF16PtrFromString(folder)
	if err != nil {
		return 0, 0, false
	}
	var ours, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &ours, &all, nil); err != nil {
		return 0, 0, false
	}
	return int64(ours), int64(all), true
}
