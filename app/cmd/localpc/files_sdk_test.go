//go:build linux

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every call for files, and those that pause, resume and measure, go the whole
// way from the published SDK to the machine's own parts, in the oldest version
// that is supported and the newest.
func TestSDKFilesAndControl(t *testing.T) {
	t.Parallel()
	p, folder := lent(t)
	for _, version := range []string{"e2b", "e2b-2.15"} {
		var got struct {
			Odd                     []string
			OddListed, Many         bool
			Bytes                   []int
			Blob, Stream, Empty     string
			GZIP                    bool
			Octets                  string
			Meta                    []map[string]string
			NoMeta                  map[string]string
			Made, Exists            []bool
			Link, List, Deep        []string
			Over                    string
			Gone, GoneRead, DirRead string
			Outside, Root           string
			Parts                   []string
			Up, Bomb                []any
			Large, Watched, Entries bool
			Events                  []string
			Polled                  bool
			Info                    []bool
			Metrics                 bool
			Paused                  []any
			WhilePaused, Counted    string
			Resumed                 int
			Killed, Running         bool
		}
		script(t, "files.mjs", version, p.key("Files "+version), &got)
		is := func(what string, ok bool, v ...any) {
			t.Helper()
			if !ok {
				t.Errorf("%s, %s: %+v", version, what, v)
			}
		}
		is("odd names", len(got.Odd) == 0 && got.OddListed && got.Many, got.Odd, got.OddListed, got.Many)
		is("forms", slices.Equal(got.Bytes, []int{0, 255, 254, 0x80, 13, 10}) && got.Blob == "blob" && got.Stream == "from a stream" && got.Empty == "", got)
		if version == "e2b" {
			is("packed", got.GZIP && got.Octets == "octets", got)
			is("metadata", len(got.Meta) == 3 && !slices.ContainsFunc(got.Meta, func(m map[string]string) bool { return len(m) != 2 || m["author"] != "Ann" || m["purpose"] != "a test" }) && got.NoMeta == nil, got.Meta, got.NoMeta)
		}
		is("made", slices.Equal(got.Made, []bool{true, false}), got.Made)
		is("links", slices.Equal(got.Link, []string{"file", "forms/blob", "blob"}) && slices.Equal(got.Exists, []bool{true, false}), got.Link, got.Exists)
		is("lists", slices.Equal(got.List, []string{"link:file", "sub:dir"}) && slices.Equal(got.Deep, []string{"link", "sub"}), got.List, got.Deep)
		is("moved over", got.Over == "new", got.Over)
		is("gone", strings.Contains(got.Gone, "NotFoundError") && strings.Contains(got.GoneRead, "NotFoundError") && strings.HasPrefix(got.DirRead, "InvalidArgumentError"), got.Gone, got.GoneRead, got.DirRead)
		is("outside", strings.Contains(got.Outside, "outside") && strings.HasPrefix(got.Root, "AuthenticationError"), got.Outside, got.Root)
		is("parts", slices.Equal(got.Parts, []string{"200 null 0123456789", "206 bytes 2-4/10 234", "206 bytes 7-9/10 789",
			`416 bytes */10 {"code":416,"message":"The file is shorter than that."}` + "\n", "200 null "}), got.Parts)
		is("uploaded", len(got.Up) == 2 && got.Up[0] == 200.0 && got.Up[1] == "by form", got.Up)
		is("a large file", got.Large)
		is("a packed one", len(got.Bomb) == 3 && got.Bomb[0] == true && got.Bomb[1] == 200.0 && got.Bomb[2] == float64(64<<20), got.Bomb)
		is("watched", got.Watched && got.Entries && got.Polled, got.Events, got.Polled)
		is("numbers", slices.Equal(got.Info, []bool{true, true}) && got.Metrics, got.Info, got.Metrics)
		is("paused", len(got.Paused) == 4 && got.Paused[0] == true && got.Paused[1] == false && got.Paused[2] == "paused" && got.Paused[3] == false, got.Paused)
		is("what a paused one says", strings.Contains(got.WhilePaused, "This sandbox is paused"), got.WhilePaused)
		// At twenty a second it would have come to thirty more.
		is("stood still", got.Resumed > 0 && got.Resumed < 20, got.Resumed, got.Counted)
		is("killed", got.Killed && !got.Running, got)
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := os.RemoveAll(filepath.Join(folder, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
}
