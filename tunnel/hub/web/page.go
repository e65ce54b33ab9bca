package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"localpc/assets"
	"localpc/tunnel/hub/store"
)

// view is what every page is drawn from.
type view struct {
	Title string
	Hub   string
	User  *store.User // nil: nobody is logged in
	Nav   string      // the page that is marked in the menu
	Flash string      // what was done a moment ago
	Error string      // what was wrong with what was sent
	Data  any

	// Passkeys: this browser could use one here, at this address.
	Passkeys bool
	// loopback: the page's form may lead to a program on this computer.
	loopback bool
	// leads is the one other origin that its form may lead to; "" for none.
	leads string
}

// pages are the templates by name, and the files beside them.
type pages struct {
	set   map[string]*template.Template
	files map[string]file
}

type file struct {
	kind, version string
	data          []byte
}

func parsePages() (pages, error) {
	p := pages{set: map[string]*template.Template{}, files: map[string]file{}}
	web := assets.Web()
	for name, kind := range map[string]string{"style.css": "text/css; charset=utf-8", "app.js": "text/javascript; charset=utf-8"} {
		data, err := fs.ReadFile(web, name)
		if err != nil {
			return p, fmt.Errorf("pages: %w", err)
		}
		p.files[name] = newFile(kind, data)
	}
	p.files["icon.png"] = newFile("image/png", assets.App())
	base, err := template.New("base.html").Funcs(p.funcs()).ParseFS(web, "base.html")
	if err != nil {
		return p, fmt.Errorf("pages: %w", err)
	}
	names, err := fs.Glob(web, "*.html")
	if err != nil {
		return p, fmt.Errorf("pages: %w", err)
	}
	for _, name := range names {
		if name == "base.html" {
			continue
		}
		t, err := base.Clone()
		if err == nil {
			t, err = t.ParseFS(web, name)
		}
		if err != nil {
			return p, fmt.Errorf("page %s: %w", name, err)
		}
		p.set[strings.TrimSuffix(name, ".html")] = t
	}
	return p, nil
}

func newFile(kind string, data []byte) file {
	sum := sha256.Sum256(data)
	return file{kind: kind, version: hex.EncodeToString(sum[:8]), data: data}
}

func (p pages) funcs() template.FuncMap {
	return template.FuncMap{
		"v":   Visible,
		"ago": ago,
		"utc": func(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") },
		"day": func(t time.Time) string { return t.UTC().Format("2 January 2006") },
		"iso": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"file": func(name string) string {
			return "/web/" + name + "?v=" + p.files[name].version
		},
	}
}

// serveFile serves what pages are made of. It is the same for everybody, and
// its address changes with it.
func (f *Face) serveFile(w http.ResponseWriter, r *http.Request) {
	file, ok := f.pages.files[path.Base(r.PathValue("file"))]
	if !ok {
		http.Error(w, "There is nothing at this address.", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", file.kind)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == file.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	h.Set("ETag", `"`+file.version+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file.data))
}

// show draws a page. It is drawn whole before anything is sent, so that an
// error is a page too.
func (f *Face) show(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	v.Hub, v.User, v.Passkeys = f.o.Name, who(r), f.canPasskeys(r)
	if v.Flash == "" {
		v.Flash = f.sessions.PopString(r.Context(), keyFlash)
	}
	var b bytes.Buffer
	if err := f.pages.set[name].ExecuteTemplate(&b, "base.html", v); err != nil {
		f.log.Error("Page could not be drawn", "page", name, "err", err)
		http.Error(w, "Something went wrong in the hub; its log says what.", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy(true, v.loopback, v.leads))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes())
}

// note is a page that says one thing and offers one way on.
type note struct {
	Lines []string
	Kind  string // "", "ok", "warn", "risk": how it is marked
	// To and Word are the way on; none when To is "". It may start a program by a
	// scheme of its own, so whoever sets it answers for where it leads.
	To   template.URL
	Word string
}

func (f *Face) sorry(w http.ResponseWriter, r *http.Request, status int, title, line string) {
	n := note{Lines: []string{line}, Kind: "warn", To: "/", Word: "Go to the start page"}
	f.show(w, r, status, "note", view{Title: title, Data: n})
}

// done goes to a page that says first what was done.
func (f *Face) done(w http.ResponseWriter, r *http.Request, to, flash string) {
	f.sessions.Put(r.Context(), keyFlash, flash)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// confirm is a page that asks before something ends.
type confirm struct {
	Lines    []string
	Action   string // where the form goes
	Yes      string // what the button says
	To, Word string // the way back
}

// ago says how long ago t was, in words.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := now.Sub(t)
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return fmt.Sprintf("%d %ss ago", n, unit)
	}
	switch {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 24*time.Hour:
		return count(int(d/time.Hour), "hour")
	case d < 30*24*time.Hour:
		return count(int(d/(24*time.Hour)), "day")
	}
	return "on " + t.UTC().Format("2 January 2006")
}
