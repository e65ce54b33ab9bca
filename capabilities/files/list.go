package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// statOp is FILE_STAT: what is at a name. A link is not followed, but its
// entry has the kind of what it leads to; the request's options make it one or
// the other as a whole.
type statOp struct {
	request
	p     *wire.FileStat
	asked asked
	place place
	none  bool // a component before the last is no folder
}

func (o *statOp) look(context.Context) (capabilities.Description, error) {
	var err error
	o.asked, o.place, err = o.j.at(o.p.Path, o.p.Follow)
	if errors.Is(err, errNotFolder) {
		o.none, err = true, nil
		o.place = place{base: o.asked.base, rel: path.Join(o.asked.rest...), missing: 1}
	}
	if err != nil {
		return capabilities.Description{}, err
	}
	d := looksOnly("stat", "Look at "+named(o.place), "%s wants to know what "+named(o.place)+" is", exact(o.asked, o.place), o.place)
	d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "looks at 1 name", Count: 1}}
	d.Payload = payload{Type: wire.TypeFileStat, Path: o.p.Path, Options: options(map[string]bool{"follow": o.p.Follow, "no_follow": o.p.NoFollow})}
	d.Fingerprint = o.place.key()
	return d, nil
}

func (o *statOp) run(context.Context, capabilities.Output) (capabilities.Result, error) {
	stat := &wire.FileStatResponse{}
	res := capabilities.Result{Type: wire.TypeFileStatResponse, Payload: stat, Outcome: "nothing is there"}
	name := o.asked.reply(o.place)
	if o.p.Follow || o.p.NoFollow {
		name = o.asked.in(o.place.base, o.place.rel)
		stat.Path = name
	}
	if o.none || !o.place.exists() {
		return res, nil
	}
	e := o.whole(o.asked, o.place, name)
	if n := o.place.node; !n.ctime.IsZero() {
		e.CTime, e.UID, e.GID = n.ctime.UnixMilli(), &n.uid, &n.gid
	}
	switch {
	case o.p.NoFollow && o.place.isLink():
		e.Kind = "other"
	case o.p.Follow:
		if _, own, err := o.j.at(o.p.Path, false); err == nil && own.isLink() {
			e.LinkTarget = e.Path
		}
	}
	res.Payload, res.Outcome = &wire.FileStatResponse{Exists: true, Entry: &e}, "a "+words[e.Kind]
	return res, nil
}

var words = map[string]string{"file": "file", "dir": "folder", "other": "name that is neither a file nor a folder"}

// whole describes p, which replies call name, with its metadata.
func (r *request) whole(a asked, p place, name string) wire.Entry {
	e := r.entry(a, p, name)
	if dir, err := handle(p.base.root, p.dir()); err == nil {
		e.Metadata = metadataOf(dir, p.name(), p.node)
		dir.Close()
	}
	return e
}

// entry describes p, which replies call name.
func (r *request) entry(a asked, p place, name string) wire.Entry {
	e := wire.Entry{
		Name: path.Base(name), Path: name, Kind: "other",
		Size: max(p.node.size, 0), Mode: p.node.perm(), MTime: p.node.mtime.UnixMilli(),
		Owner: r.e.names.user(p.node.uid), Group: r.e.names.group(p.node.gid),
	}
	target := p
	if p.isLink() {
		if text, err := p.base.root.Readlink(p.rel); err == nil {
			e.LinkTarget = escaped(text)
		}
		q, err := r.j.resolve(asked{text: name, base: p.base, rest: split(p.rel)}, true)
		if err != nil || !q.exists() {
			return e
		}
		target, e.LinkTarget = q, a.in(q.base, q.rel)
	}
	switch {
	case target.node.mode.IsDir():
		e.Kind = "dir"
	case target.node.mode.IsRegular():
		e.Kind = "file"
	}
	return e
}

// listOp is FILE_LIST: FILE_LIST_RESPONSE as often as needed, ACK. Folders
// behind links are not descended into.
type listOp struct {
	request
	p     *wire.FileList
	asked asked
	place place
}

func (o *listOp) look(context.Context) (capabilities.Description, error) {
	var err error
	if o.asked, o.place, err = o.j.folderAt(o.p.Path, "to list"); err != nil {
		return capabilities.Description{}, err
	}
	d := looksOnly("list", "List "+named(o.place), "%s wants to see what is in "+named(o.place), exact(o.asked, o.place), o.place)
	text := "lists 1 folder"
	if o.p.Depth > 1 {
		text = fmt.Sprintf("lists 1 folder, %d levels deep", o.p.Depth)
	}
	d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: text, Count: 1}}
	d.Payload = payload{Type: wire.TypeFileList, Path: o.p.Path, Depth: o.p.Depth}
	d.Fingerprint = o.place.key() + "\x00" + o.place.node.which()
	return d, nil
}

// maxListFrame keeps a reply below wire.MaxFrame, whatever its names cost once
// they are escaped.
const maxListFrame = 3 << 20

// entryCost is how much of a frame an entry takes at the most: JSON writes a
// byte as six then.
func entryCost(e *wire.Entry) int {
	cost := 256 + 6*(len(e.Name)+len(e.Path)+len(e.LinkTarget))
	for k, v := range e.Metadata {
		cost += 16 + len(k) + 6*len(v)
	}
	return cost
}

// lister gathers entries into replies.
type lister struct {
	o     *listOp
	out   capabilities.Output
	batch []wire.Entry
	cost  int
	total int
}

func (o *listOp) run(ctx context.Context, out capabilities.Output) (capabilities.Result, error) {
	l := &lister{o: o, out: out}
	if err := l.dir(ctx, o.place, o.asked.reply(o.place), o.p.Depth); err != nil {
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	if err := l.flush(ctx); err != nil {
		return capabilities.Result{}, err
	}
	return capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: count(l.total, "entry", "entries", false) + " listed"}, nil
}

func (l *lister) dir(ctx context.Context, p place, name string, depth int) error {
	var names []string
	err := eachEntry(p.base.root, p.rel, func(_ *os.File, name string) error {
		names = append(names, name)
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	dir, err := handle(p.base.root, p.rel)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, child := range names {
		q, full := p.child(child), join(name, listed(names, child))
		if len(full) > 2*wire.MaxPath {
			continue // the wire takes no such path
		}
		q.node, err = lstatIn(dir, child)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		e := l.o.entry(l.o.asked, q, full)
		e.Metadata = metadataOf(dir, child, q.node)
		if err := l.add(ctx, e); err != nil {
			return err
		}
		if !q.node.mode.IsDir() || depth <= 1 {
			continue
		}
		err := l.dir(ctx, q, full, depth-1)
		// A folder that cannot be read is listed itself; one that went, or
		// was swapped, has nothing in it any more.
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// listed is name as a list shows it, among the sorted names beside it. Where
// another has the very name that is written for one that is not UTF-8, nothing
// leads to the latter, and it does not look as if something did.
func listed(names []string, name string) string {
	form := escaped(name)
	if form != name {
		if _, taken := slices.BinarySearch(names, form); taken {
			return strings.ToValidUTF8(name, "\ufffd")
		}
	}
	return form
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

func (l *lister) add(ctx context.Context, e wire.Entry) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	cost := entryCost(&e)
	if len(l.batch) == wire.MaxListEntries || l.cost+cost > maxListFrame {
		if err := l.flush(ctx); err != nil {
			return err
		}
	}
	l.batch, l.cost, l.total = append(l.batch, e), l.cost+cost, l.total+1
	return nil
}

func (l *lister) flush(ctx context.Context) error {
	if len(l.batch) == 0 {
		return nil
	}
	err := l.out.Send(ctx, wire.TypeFileListResponse, &wire.FileListResponse{Entries: l.batch})
	l.batch, l.cost = nil, 0
	return err
}
