package web_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"localpc/tunnel/hub/store"
	"localpc/tunnel/hub/web"
	"localpc/tunnel/wire"
)

// disk is what a computer lists: folders by the path of the one they are in,
// "" for the beginning. References are good until it forgets them.
type disk struct {
	mu     sync.Mutex
	tree   map[string][]string // guarded by mu
	size   int                 // of a page; guarded by mu
	err    error               // what every look ends with; guarded by mu
	refuse string              // a folder that is listed and not lent; guarded by mu
	looks  int                 // guarded by mu
	refs   map[string]string   // paths by look and reference; guarded by mu
}

func (d *disk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// forget ends every look, as five minutes do, and a new connection.
func (d *disk) forget() { d.set(func() { d.refs = nil }) }

func (d *disk) fails(err error) { d.set(func() { d.err = err }) }

func (s *site) Browse(_ context.Context, _, _ string, at web.Place) (web.Folders, error) {
	d := &s.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return web.Folders{}, d.err
	}
	if d.refs == nil {
		d.refs = map[string]string{}
	}
	out := web.Folders{Look: at.Look}
	path := ""
	if at.Look == "" {
		d.looks++
		out.Look = fmt.Sprint("look ", d.looks)
	} else {
		if path = d.refs[at.Look+at.Folder]; path == "" {
			return out, wire.Errorf(wire.CodeSessionNotOpen, "This list is not open.")
		}
		out.Here = &web.Folder{Ref: at.Folder, Name: path[strings.LastIndex(path, "/")+1:], Path: path}
	}
	names, ok := d.tree[path]
	if !ok {
		return out, wire.Errorf(wire.CodePathNotFound, "It is gone.")
	}
	size := d.size
	if size == 0 {
		size = 200
	}
	first := 0
	if at.Page != "" {
		if _, err := fmt.Sscan(at.Page, &first); err != nil || first >= len(names) {
			return out, wire.Errorf(wire.CodeSessionNotOpen, "There is no such page.")
		}
	}
	for i := first; i < min(first+size, len(names)); i++ {
		child := names[i]
		if path != "" {
			child = path + "/" + names[i]
		}
		ref := fmt.Sprintf("&%s?%d", path, i)
		d.refs[out.Look+ref] = child
		out.List = append(out.List, web.Folder{Ref: ref, Name: child[strings.LastIndex(child, "/")+1:], Path: child})
	}
	if first+size < len(names) {
		out.Next = fmt.Sprint(first + size)
	}
	out.Cut = out.Here != nil && len(names) > 400
	return out, nil
}

func (s *site) UseFolder(ctx context.Context, user, machine string, at web.Place) (string, error) {
	got, err := s.Browse(ctx, user, machine, at)
	if err != nil {
		return "", err
	}
	if got.Here.Path == s.disk.refuse {
		return "", wire.Errorf(wire.CodePathNotFound, "The home can't be lent.")
	}
	return got.Here.Path, s.store.SetFolder(ctx, user, machine, got.Here.Path)
}

const hostile = "zz \u202egnp.exe <b>bold"

// companion is a computer that speaks AutoGPT's wire, with folders.
func (s *site) companion(user, id, name string) {
	s.t.Helper()
	s.machine(user, id, name, true)
	if _, err := s.store.Connected(s.t.Context(), store.Machine{ID: id, User: user, Name: name, Platform: "linux", Arch: "amd64", Software: store.CompanionSoftware + "0.3.0"}); err != nil {
		s.t.Fatal(err)
	}
	long := strings.Repeat("long-", 50) + "name"
	s.disk.tree = map[string][]string{"": {"/home/ana", "/media/ana/Stick"}, "/media/ana/Stick": {}, "/home/ana": {".cache", "Work", long, hostile}, "/home/ana/Work": {"Project", "Attic"},
		"/home/ana/Work/Project": {}, "/home/ana/Work/Attic": {}, "/home/ana/" + long: {}, "/home/ana/" + hostile: {"inner"}, "/home/ana/" + hostile + "/inner": {}}
}

func (s *site) folder(machine string) string {
	s.t.Helper()
	folder, err := s.store.Folder(s.t.Context(), store.OwnerID, machine)
	if err != nil {
		s.t.Fatal(err)
	}
	return folder
}

func TestChooseAFolder(t *testing.T) {
	t.Parallel()
	bothSizes(t, func(t *testing.T, z size) {
		s := owned(t)
		s.companion(store.OwnerID, "m2", "Workshop")
		b := s.browser(z).logIn("Ana").open("/").sees("No folder yet: programs can't work here").check("machines-companion")
		b.click("Choose a folder for Workshop").sees("Choose a folder for Workshop", "/home/ana", "/media/ana/Stick").seesNot("Use this folder").check("folder-start")
		b.click("Open ana").sees("Use this folder", "Start", `zz \u202egnp.exe <b>bold`).check("folder-home")
		b.click(`Open zz \u202egnp.exe <b>bold`).sees("inner", `/home/ana/zz \u202egnp.exe <b>bold`)
		b.click("/home/ana").sees("Work")
		b.click("Open Work").click("Open Project").sees("There is no folder in here.", "/home/ana/Work/Project").check("folder-empty")
		b.click("Work").sees("Project", "Attic").click("Open Project")
		b.click("Use this folder").sees("Programs that start on Workshop work in /home/ana/Work/Project from now on.", "Programs work in /home/ana/Work/Project").check("machines-folder")
		if got := s.folder("m2"); got != "/home/ana/Work/Project" {
			t.Errorf("kept: %q", got)
		}
		b.click("Choose a folder for Workshop").sees("Programs work in /home/ana/Work/Project now.").click("Back").sees("Machines", "Programs work in /home/ana/Work/Project")

		s.disk.fails(wire.Errorf(wire.CodePending, "Wait."))
		b.click("Choose a folder for Workshop").sees("A card on that computer asks whether the names of its folders may be seen. Click Allow there, then look again.").check("folder-pending")
		s.disk.fails(nil)
		b.click("Look again").sees("/media/ana/Stick").click("Open ana").sees("Use this folder")
		s.disk.forget()
		b.click("Open Work").sees("The list had ended", "/media/ana/Stick").seesNot("Use this folder").check("folder-anew")
	})
}

func TestAFolderByKeyboardWithoutScripts(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.companion(store.OwnerID, "m2", "Workshop")
	b := s.browser(desk).withoutScripts().logIn("Ana").open("/machines/m2/folder")
	b.tabTo("Open ana").enter().tabTo("Open Work").enter().tabTo("Use this folder").enter().sees("Programs work in /home/ana/Work")
	b.tabTo("Choose a folder for Workshop").enter().tabTo("Let no program work on this computer").enter().sees("No new program can work on Workshop.", "No folder yet")
	if got := s.folder("m2"); got != "" {
		t.Errorf("kept: %q", got)
	}
}

// linkOf is where a page's link with that name leads.
func linkOf(t *testing.T, page, name string) string {
	t.Helper()
	for _, m := range regexp.MustCompile(`<a [^>]*href="([^"]*)"(?: aria-label="([^"]*)")?[^>]*>([^<]*)<`).FindAllStringSubmatch(page, -1) {
		if name == html.UnescapeString(m[2]) || name == html.UnescapeString(m[3]) {
			return html.UnescapeString(m[1])
		}
	}
	t.Fatalf("no link %q in\n%s", name, page)
	return ""
}

// form is what the page's form to use a folder sends.
func form(page string) url.Values {
	v := url.Values{}
	for _, m := range regexp.MustCompile(`<input type="hidden" name="(\w+)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		v.Add(m[1], html.UnescapeString(m[2]))
	}
	return v
}

func TestWhoMayChooseAFolder(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.machine(store.OwnerID, "m1", "Ours", true)
	s.companion(store.OwnerID, "m2", "Workshop")
	bo := s.member("Bo")
	s.companion(bo.ID, "m3", "Bo's")
	c := s.caller().logIn("Ana")
	if strings.Contains(c.get("/").text, "/machines/m1/folder") {
		t.Error("a computer whose person chooses has the link too")
	}
	work := c.get(linkOf(t, c.get(linkOf(t, c.get("/machines/m2/folder").text, "Open ana")).text, "Open Work")).text
	use := form(work)
	if use.Get("look") == "" || len(use["in"]) != 2 {
		t.Fatalf("the form sends %v", use)
	}
	other := s.caller().logIn("Bo")
	for _, id := range []string{"m1", "m3", "none"} {
		if a := c.get("/machines/" + id + "/folder"); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", id, a.StatusCode)
		}
		for _, v := range []url.Values{use, {"forget": {"yes"}}} {
			if a := c.post("/machines/"+id+"/folder", v); a.StatusCode != http.StatusNotFound {
				t.Errorf("set %s: %d", id, a.StatusCode)
			}
		}
	}
	if a := other.post("/machines/m2/folder", use); a.StatusCode != http.StatusNotFound {
		t.Errorf("somebody else: %d", a.StatusCode)
	}
	if a := s.caller().post("/machines/m2/folder", use); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/login") {
		t.Errorf("nobody: %d", a.StatusCode)
	}
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example"}} {
		if a := c.do("POST", "/machines/m2/folder", use, header...); a.StatusCode != http.StatusForbidden {
			t.Errorf("another site's form with %v: %d", header, a.StatusCode)
		}
	}
	// A path, and a reference of one's own, say nothing to the computer.
	for _, v := range []url.Values{{"folder": {"/etc"}}, {"look": {use.Get("look")}, "in": {"/etc"}}, {"look": {"/"}, "in": use["in"]}, {"in": use["in"]}, {"look": use["look"]}} {
		if a := c.post("/machines/m2/folder", v); a.StatusCode != http.StatusConflict || !strings.Contains(a.text, "Open ana") {
			t.Errorf("%v: %d", v, a.StatusCode)
		}
	}
	if got := s.folder("m2"); got != "" {
		t.Fatalf("kept: %q", got)
	}
	if a := c.post("/machines/m2/folder", use); a.StatusCode != http.StatusSeeOther || s.folder("m2") != "/home/ana/Work" {
		t.Errorf("%d, kept %q", a.StatusCode, s.folder("m2"))
	}
	if strings.Contains(s.logs.String(), "/home/ana") {
		t.Error("a folder's name is in the log")
	}
}

// Whatever the computer answers, the page says so, changes nothing and offers a
// way on.
func TestAFolderThatCannotBeChosen(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.companion(store.OwnerID, "m2", "Workshop")
	c := s.caller().logIn("Ana")
	start := c.get("/machines/m2/folder").text
	home := c.get(linkOf(t, start, "Open ana")).text
	use := form(home)
	for _, bad := range []struct {
		err        error
		page, sent string // what the page says, when looked at and when sent
	}{
		{wire.Errorf(wire.CodeOffline, ""), "Switch the computer on", "The folder was not set."},
		{wire.Errorf(wire.CodePending, ""), "Click Allow there, then look again.", "The folder was not set."},
		{wire.Errorf(wire.CodeDenied, "Not \u202etoday."), `Its person did not allow it, or its program is paused or has this switched off. It says: “Not \u202etoday.”`, "The folder was not set."},
		{wire.Errorf(wire.CodeOverloaded, ""), "did not answer in time", "The folder was not set."},
		{wire.Errorf(wire.CodeInternal, "%s", strings.Repeat("x", 5000)), "It says: “" + strings.Repeat("x", 300) + "…”", "The folder was not set."},
		{fmt.Errorf("secret cause"), "The computer could not do that.", "Something went wrong"},
	} {
		s.disk.fails(bad.err)
		at := linkOf(t, start, "Open ana")
		if a := c.get(at); a.StatusCode != http.StatusOK || !strings.Contains(a.text, bad.page) || linkOf(t, a.text, "Look again") != at || strings.Contains(a.text, "secret cause") {
			t.Errorf("%v: %d %s", bad.err, a.StatusCode, a.text)
		}
		if a := c.post("/machines/m2/folder", use); a.StatusCode < 400 || !strings.Contains(a.text, bad.sent) || strings.Contains(a.text, "secret cause") {
			t.Errorf("sent, %v: %d %s", bad.err, a.StatusCode, a.text)
		}
		s.disk.fails(nil)
	}
	s.disk.set(func() { s.disk.refuse = "/home/ana" })
	if a := c.post("/machines/m2/folder", use); a.StatusCode != http.StatusConflict || !strings.Contains(a.text, "The folder was not set. It says: “The home can&#39;t be lent.”") || !strings.Contains(a.text, "Open Work") {
		t.Errorf("refused: %d %s", a.StatusCode, a.text)
	}
	// One that is gone: the page lists where it was.
	s.disk.set(func() { delete(s.disk.tree, "/home/ana/Work") })
	if a := c.get(linkOf(t, home, "Open Work")); !strings.Contains(a.text, "That folder cannot be opened now. It says: “It is gone.”") || !strings.Contains(a.text, "Open Work") || !strings.Contains(a.text, "Use this folder") {
		t.Errorf("gone: %s", a.text)
	}
	s.disk.set(func() { delete(s.disk.tree, "/home/ana") })
	if a := c.get(linkOf(t, start, "Open ana")); !strings.Contains(a.text, "That folder cannot be opened now.") || !strings.Contains(a.text, "Open Stick") || strings.Contains(a.text, "Use this folder") {
		t.Errorf("a gone home: %s", a.text)
	}
	s.disk.forget()
	if a := c.post("/machines/m2/folder", use); a.StatusCode != http.StatusConflict || !strings.Contains(a.text, "The list had ended") || !strings.Contains(a.text, "Open Stick") {
		t.Errorf("ended: %d %s", a.StatusCode, a.text)
	}
	if got := s.folder("m2"); got != "" {
		t.Errorf("kept: %q", got)
	}
}

func TestManyFolders(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.companion(store.OwnerID, "m2", "Workshop")
	var names []string
	for i := range 450 {
		names = append(names, fmt.Sprintf("d%03d", i))
	}
	s.disk.tree["/home/ana/Work"] = append([]string{".hidden"}, names...)
	for _, n := range names {
		s.disk.tree["/home/ana/Work/"+n] = nil
	}
	c := s.caller().logIn("Ana")
	at := linkOf(t, c.get(linkOf(t, c.get("/machines/m2/folder").text, "Open ana")).text, "Open Work")
	var seen []string
	first := c.get(at).text
	for page := first; ; page = c.get(linkOf(t, page, "Next page")).text {
		for _, m := range regexp.MustCompile(`aria-label="Open ([^"]*)"`).FindAllStringSubmatch(page, -1) {
			seen = append(seen, m[1])
		}
		if !strings.Contains(page, "more folders here than the computer lists") {
			t.Error("the page does not say that it lacks some")
		}
		if !strings.Contains(page, "Next page") {
			if to := linkOf(t, page, "First page"); to != at {
				t.Errorf("the first page is %q, not %q", to, at)
			}
			break
		}
	}
	if i := slices.Index(seen, ".hidden"); len(seen) != 451 || i != 199 {
		t.Errorf("%d folders seen, the hidden one is %d", len(seen), i)
	}
	// What is used on a later page is the folder itself.
	page := c.get(linkOf(t, first, "Next page")).text
	if a := c.post("/machines/m2/folder", form(page)); a.StatusCode != http.StatusSeeOther || s.folder("m2") != "/home/ana/Work" {
		t.Errorf("%d, kept %q", a.StatusCode, s.folder("m2"))
	}
}

func TestWhatAnAddressOfAFolderMayHold(t *testing.T) {
	t.Parallel()
	s := owned(t)
	s.companion(store.OwnerID, "m2", "Workshop")
	c := s.caller().logIn("Ana")
	for _, q := range []url.Values{{"look": {"x"}}, {"in": {"x"}}, {"look": {"look 1"}, "in": slices.Repeat([]string{"x"}, 5000)}, {"look": {"\x00\xff"}, "in": {"\u202e"}}, {"look": {strings.Repeat("x", 5000)}, "in": {"x"}, "page": {"9"}}} {
		if a := c.get("/machines/m2/folder?" + q.Encode()); a.StatusCode != http.StatusOK || !strings.Contains(a.text, "Open ana") {
			t.Errorf("%.60q: %d", q.Encode(), a.StatusCode)
		}
	}
	if a := c.do("POST", "/machines/m2/folder", url.Values{"look": {strings.Repeat("x", 1<<20)}}); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a huge form: %d", a.StatusCode)
	}
}
