package network

import (
	"fmt"
	"net/netip"
	"strings"

	"localpc/capabilities"
	"localpc/consent"
)

// whereWords say what kind of place it is.
var whereWords = map[place]string{
	internet: "a computer on the internet",
	home:     "a device in your own network",
	local:    "a program on this computer",
	link:     "a device on the same cable or wireless network",
}

const metadataWords = "the service that gives a cloud computer its own keys"

// portWords say what is usually spoken at a port.
var portWords = map[int]string{21: "file transfer", 22: "remote log-in (ssh)", 23: "remote log-in, not encrypted", 25: "sending e-mail", 53: "asking for the addresses of names",
	80: "web, not encrypted", 110: "reading e-mail", 143: "reading e-mail", 443: "encrypted web", 445: "shared folders", 465: "sending e-mail", 587: "sending e-mail",
	631: "printers", 993: "reading e-mail", 995: "reading e-mail", 1433: "a database", 2375: "Docker", 3306: "a database", 3389: "remote desktop", 5432: "a database", 5900: "remote desktop",
	6379: "a database", 8080: "web, not encrypted", 8443: "encrypted web", 9200: "a database", 9418: "git, not encrypted", 27017: "a database"}

func portName(port int) string {
	if w := portWords[port]; w != "" {
		return fmt.Sprintf("port %d, %s", port, w)
	}
	return fmt.Sprintf("port %d", port)
}

// spot is what a look at a request found.
type spot struct {
	host    host
	port    int
	place   place
	addrs   []netip.Addr // to be connected to, in this order
	places  []place      // of each of addrs
	service bool         // metadata of a cloud
	through string       // the computer's own proxy, "" for none
}

func (s *spot) hostPort() string {
	if s.host.addr.Is6() {
		return fmt.Sprintf("[%s]:%d", s.host.name, s.port)
	}
	return fmt.Sprintf("%s:%d", s.host.name, s.port)
}

// what says what kind of place it is.
func (s *spot) what() string {
	if s.service {
		return metadataWords
	}
	return whereWords[s.place]
}

func (s *spot) describe(c *capabilities.Connect) capabilities.Description {
	program := consent.Visible(clip(c.Program, 40), false)
	if program == "" {
		program = "a program"
	}
	sentence := "%s: a command (" + program + ") wants to reach " + s.host.name
	if s.place != internet {
		sentence += ", " + s.what()
	}
	d := capabilities.Description{
		Action: string(s.place), Title: "Reach " + clip(s.host.name, 60), Sentence: sentence + ".", Exact: s.hostPort(),
		Effects:     []consent.Effect{{Kind: consent.EffectConnect, Text: "reaches " + s.host.name + ", " + s.what() + " (" + portName(s.port) + ")"}},
		Risk:        consent.RiskNormal,
		Payload:     payload{s.host.name, s.port},
		Fingerprint: string(s.place),
		Rule:        capabilities.RuleParts{Exact: s.hostPort()},
		Scopes:      []consent.Scope{consent.Command, consent.Session, consent.Minutes15, consent.Always},
		NoOnce:      true,
	}
	if s.port != 443 {
		d.Title += fmt.Sprintf(":%d", s.port)
	}
	if s.place == internet {
		d.Wide = &capabilities.Wide{Action: string(internet), Effects: []consent.EffectKind{consent.EffectConnect}, Words: "any address on the internet"}
	} else {
		d.Risk, d.Scopes = consent.RiskHigh, []consent.Scope{consent.Command, consent.Session, consent.Minutes15}
	}
	d.Details = s.details(c)
	return d
}

func (s *spot) details(c *capabilities.Connect) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.host.mixed {
		add("Careful: the name %s has letters of several alphabets; some may only look like others", s.host.shown)
	} else if s.host.shown != "" {
		add("In its own letters the name is %s", s.host.shown)
	}
	if asked := strings.ToLower(strings.Trim(s.host.asked, "[].")); s.host.addr.IsValid() && asked != s.host.name {
		add("It was asked for as %s, which is another way to write %s", consent.Visible(clip(asked, 80), false), s.host.name)
	}
	add("At %s", portName(s.port))
	if len(s.addrs) > 0 && !s.host.addr.IsValid() {
		const most = 8
		list := []string{}
		for i, a := range s.addrs {
			if i == most {
				list = append(list, fmt.Sprintf("%d more", len(s.addrs)-most))
				break
			}
			text := a.String()
			if s.places[i] != s.place {
				text += " (" + whereWords[s.places[i]] + ")"
			}
			list = append(list, text)
		}
		add("Its addresses now: %s", strings.Join(list, ", "))
	}
	if s.through != "" {
		add("Through this computer's own proxy, %s, which looks up where the name leads", consent.Visible(s.through, false))
	}
	if s.service {
		add("Whoever reaches it can act for this whole computer in its cloud")
	}
	if c.Line != "" {
		add("The command: %s", consent.Visible(clip(c.Line, 200), false))
	} else {
		add("Which of the commands it is can't be told, so what one of them was allowed does not count for it")
	}
	return out
}
