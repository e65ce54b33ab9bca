package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"localpc/consent"
	"localpc/tunnel/wire"
	"localpc/tunnel/wire/autogpt"
)

// look lists what is in a folder, "" for the roots of a new browse.
type look struct {
	*chatRig
	browse string
}

func (r *chatRig) look() (*look, autogpt.Directory) {
	r.Helper()
	d, err := r.c.List(r.Context(), autogpt.DirectoryList{})
	must(r.T, err)
	return &look{r, d.BrowseID}, d
}

func (l *look) in(ref string, cursor *string) (autogpt.Directory, error) {
	d, err := l.c.List(l.Context(), autogpt.DirectoryList{BrowseID: &l.browse, DirectoryRef: &ref, Cursor: cursor})
	if err == nil {
		must(l.T, d.Validate())
	}
	return d, err
}

func (l *look) must(ref string) autogpt.Directory {
	l.Helper()
	d, err := l.in(ref, nil)
	must(l.T, err)
	return d
}

func names(d autogpt.Directory) string {
	var out []string
	for _, e := range d.Entries {
		out = append(out, e.Name)
	}
	return strings.Join(out, " ")
}

func dirs(t *testing.T, paths ...string) {
	t.Helper()
	for _, p := range paths {
		must(t, os.MkdirAll(p, 0o755))
	}
}

func TestOnlyFoldersThatCouldBeLentAreNamed(t *testing.T) {
	r := newChatRig(t)
	home := os.Getenv("HOME")
	disks := filepath.Join(t.TempDir(), "media")
	dirs(t, disks+"/stick", disks+"/.hidden", home+"/Zoo", home+"/äpfel", home+"/.ssh", home+"/a<b", home+"/line\nbreak", home+"/left\u202eright", home+"/bad\xff", home+"/Documents/.git", home+"/Documents/plan", r.m.o.Paths.Data)
	must(t, os.WriteFile(home+"/file", nil, 0o644))
	must(t, os.Symlink("/etc", home+"/etc"))
	must(t, os.Symlink(home+"/Documents", home+"/to-documents"))
	must(t, os.Symlink("/etc", disks+"/etc"))
	r.c.browser.mounts = []string{disks, disks + "/none"}

	l, roots := r.look()
	if names(roots) != "anna stick" || roots.Current != nil || roots.ParentRef != nil || roots.NextCursor != nil || roots.Truncated || roots.Entries[0].Path != home {
		t.Fatalf("the roots are %+v", roots)
	}
	if left := time.Until(time.UnixMilli(int64(roots.ExpiresAt * 1000))); left < 290*time.Second || left > 300*time.Second {
		t.Errorf("it lives for %s", left)
	}
	in := l.must(roots.Entries[0].Ref)
	if names(in) != "Documents project Zoo äpfel" || in.Current == nil || in.Current.Path != home || in.ParentRef != nil {
		t.Errorf("in the home: %+v", in)
	}
	docs := in.Entries[0]
	deep := l.must(docs.Ref)
	if names(deep) != "plan" || deep.ParentRef == nil || *deep.ParentRef != roots.Entries[0].Ref || deep.Entries[0].Path != home+"/Documents/plan" {
		t.Errorf("below: %+v", deep)
	}
	if again := l.must(roots.Entries[0].Ref); again.Entries[0] != docs {
		t.Errorf("listed again a folder has another name: %+v, %+v", again.Entries[0], docs)
	}
	if got := r.m.journal.items[0].e; got.Capability != capFolders || got.Result != "4 folders named" {
		t.Errorf("the log says %+v", got)
	}

	// The home itself is no session's folder.
	_, err := r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat", BrowseID: l.browse, DirectoryRef: roots.Entries[0].Ref})
	wantWord(t, err, autogpt.CodeUnavailable)
	// That cost nothing: the browse goes on, until it is used.
	_, err = r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat", BrowseID: l.browse, DirectoryRef: docs.Ref})
	must(t, err)
	_, err = l.in(docs.Ref, nil)
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	_, err = r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat", BrowseID: l.browse, DirectoryRef: docs.Ref})
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	_, err = r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat", BrowseID: home, DirectoryRef: home})
	wantWord(t, err, autogpt.CodeReferenceInvalid)
}

func TestDrivesOfWindows(t *testing.T) {
	r := newChatRig(t)
	mnt := filepath.Join(t.TempDir(), "mnt")
	dirs(t, mnt+"/c/Windows", mnt+"/c/Work/Windows", mnt+"/c/Program Files", mnt+"/wsl")
	r.c.browser.drives = []string{mnt}
	l, roots := r.look()
	if names(roots) != "anna c" {
		t.Fatalf("the roots are %s", names(roots))
	}
	c := l.must(roots.Entries[1].Ref)
	if names(c) != "Work" || names(l.must(c.Entries[0].Ref)) != "Windows" {
		t.Errorf("in the drive: %s", names(c))
	}
}

func TestPagesOfALargeFolder(t *testing.T) {
	r := newChatRig(t)
	for i := range 450 {
		dirs(t, fmt.Sprintf("%s/large/d%03d", r.folder, i))
	}
	l, roots := r.look()
	home := l.must(roots.Entries[0].Ref)
	project := l.must(home.Entries[0].Ref)
	large := project.Entries[0].Ref
	one := l.must(large)
	if len(one.Entries) != 200 || one.NextCursor == nil || one.Entries[199].Name != "d199" || one.Truncated {
		t.Fatalf("%d entries, %+v", len(one.Entries), one.NextCursor)
	}
	two, err := l.in(large, one.NextCursor)
	must(t, err)
	three, err := l.in(large, two.NextCursor)
	must(t, err)
	if len(two.Entries) != 200 || len(three.Entries) != 50 || three.NextCursor != nil || three.Entries[49].Name != "d449" || three.Current.Path != r.folder+"/large" {
		t.Errorf("%d and %d entries", len(two.Entries), len(three.Entries))
	}
	if again, err := l.in(large, one.NextCursor); err != nil || again.Entries[0] != two.Entries[0] {
		t.Errorf("a page asked for again: %v", err)
	}
	for _, c := range []string{"none", large} {
		_, err = l.in(large, &c)
		wantWord(t, err, autogpt.CodeReferenceInvalid)
	}
	_, err = l.in(home.Entries[0].Ref, one.NextCursor) // of another folder
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	other, _ := r.look()
	_, err = other.in(large, nil)
	wantWord(t, err, autogpt.CodeReferenceInvalid)

	// Too many names, and too many references.
	for i := range maxScanned + 1 {
		dirs(t, fmt.Sprintf("%s/more/m%04d", r.folder, i))
	}
	more := l.must(home.Entries[0].Ref).Entries[1].Ref
	d := l.must(more)
	pages, all := 1, len(d.Entries)
	for d.NextCursor != nil {
		if !d.Truncated {
			t.Fatal("a cut page does not say so")
		}
		d, err = l.in(more, d.NextCursor)
		must(t, err)
		pages, all = pages+1, all+len(d.Entries)
	}
	if want := maxRefs - 1 - 1 - 2 - 450; all != want { // the home, its one, its two, the large one's
		t.Errorf("%d named in %d pages, want %d", all, pages, want)
	}
	r.c.browser.mu.Lock()
	br := r.c.browser.find(l.browse)
	if len(br.dirs) != maxRefs || len(br.pages) > maxCursors {
		t.Errorf("%d references, %d cursors", len(br.dirs), len(br.pages))
	}
	r.c.browser.mu.Unlock()
	for range maxCursors {
		_ = l.must(large)
	}
	_, err = l.in(large, one.NextCursor) // long ago
	wantWord(t, err, autogpt.CodeReferenceInvalid)
}

func TestBrowsesEnd(t *testing.T) {
	r := newChatRig(t)
	r.says(func(q consent.Request) (consent.Answer, bool) { return r.yes(q, consent.Session), true })
	first, roots := r.look()
	for range maxBrowses - 1 {
		r.look()
	}
	_ = first.must(roots.Entries[0].Ref)
	r.look()
	_, err := first.in(roots.Entries[0].Ref, nil)
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	l, roots := r.look()
	now := time.Now()
	r.c.browser.now = func() time.Time { return now.Add(browseTime - time.Second) }
	_ = l.must(roots.Entries[0].Ref)
	r.c.browser.now = func() time.Time { return now.Add(browseTime + time.Second) }
	_, err = l.in(roots.Entries[0].Ref, nil)
	wantWord(t, err, autogpt.CodeReferenceInvalid)
	r.c.browser.now = time.Now
	l, roots = r.look()
	r.c.Reset()
	_, err = l.in(roots.Entries[0].Ref, nil)
	wantWord(t, err, autogpt.CodeReferenceInvalid)
}

// What was named is that folder, whatever stands at its name later.
func TestAFolderThatWasSwappedIsNotUsed(t *testing.T) {
	home := func() string { return os.Getenv("HOME") }
	for what, swap := range map[string]func(){
		"moved away": func() { must(t, os.Rename(home()+"/project/sub", home()+"/elsewhere")) },
		"deleted":    func() { must(t, os.RemoveAll(home()+"/project/sub")) },
		"a link to elsewhere in its place": func() {
			must(t, os.Rename(home()+"/project/sub", home()+"/elsewhere"))
			must(t, os.Symlink("/etc", home()+"/project/sub"))
		},
		"a link to itself in its place": func() {
			must(t, os.Rename(home()+"/project/sub", home()+"/elsewhere"))
			must(t, os.Symlink(home()+"/elsewhere", home()+"/project/sub"))
		},
		"another folder in its place": func() { must(t, os.Rename(home()+"/project/sub", home()+"/elsewhere")); dirs(t, home()+"/project/sub") },
		"a link above it": func() {
			must(t, os.Rename(home()+"/project", home()+"/elsewhere"))
			must(t, os.Symlink(home()+"/elsewhere", home()+"/project"))
		},
		"a pipe above it": func() { must(t, os.Rename(home()+"/project", home()+"/elsewhere")); must(t, fifo(home()+"/project")) },
		"a file in its place": func() {
			must(t, os.RemoveAll(home()+"/project/sub"))
			must(t, os.WriteFile(home()+"/project/sub", nil, 0o644))
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := newChatRig(t)
			dirs(t, r.folder+"/sub/deep")
			l, roots := r.look()
			sub := l.must(l.must(roots.Entries[0].Ref).Entries[0].Ref).Entries[0]
			if sub.Name != "sub" {
				t.Fatalf("found %+v", sub)
			}
			swap()
			_, err := l.in(sub.Ref, nil)
			wantWord(t, err, autogpt.CodeUnavailable)
			_, err = r.c.Attach(t.Context(), autogpt.Attach{SessionID: "chat", BrowseID: l.browse, DirectoryRef: sub.Ref})
			wantWord(t, err, autogpt.CodeUnavailable)
			if len(r.c.bound) != 0 {
				t.Error("it was bound")
			}
		})
	}
}

// A path that this machine's own HELLO could not carry is not named.
func TestPathsThatAreTooLong(t *testing.T) {
	r := newChatRig(t)
	at, err := os.OpenRoot(r.folder)
	must(t, err)
	name := strings.Repeat("n", 250)
	for range 18 {
		must(t, at.Mkdir(name, 0o755))
		next, err := at.OpenRoot(name)
		must(t, err)
		must(t, at.Close())
		at = next
	}
	must(t, at.Close())
	l, roots := r.look()
	d := l.must(l.must(roots.Entries[0].Ref).Entries[0].Ref)
	depth := 0
	for ; len(d.Entries) > 0; depth++ {
		if p := d.Entries[0].Path; len(p) > wire.MaxPath {
			t.Fatalf("a path of %d bytes is named", len(p))
		}
		next, err := l.in(d.Entries[0].Ref, nil)
		if autogpt.CodeOf(err) == autogpt.CodeUnavailable {
			break // the system takes no path as long as that
		}
		must(t, err)
		d = next
	}
	if depth < 14 || depth > 16 {
		t.Errorf("%d levels are named", depth)
	}
}
