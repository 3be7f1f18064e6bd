package report

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/bench/internal/bench"
)

// Update rewrites what stands between markers in a page, and leaves the rest alone:
//
//	<!-- bench:cold -->
//	…
//	<!-- /bench -->
//
// The name is a scenario's, for its table; "figures"; "conditions"; or "supported", the table of what
// a Redis supports. A name that was not measured keeps what it has; one that nobody knows is an error.
func Update(r *bench.Report, path string) error {
	page, err := os.ReadFile(path) //nolint:gosec // the caller's own file
	if err != nil {
		return err
	}
	updated, err := fill(r, string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return write(path, []byte(updated))
}

const (
	opening = "<!-- bench:"
	closing = "<!-- /bench -->"
)

func fill(r *bench.Report, page string) (string, error) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(page, opening)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, rest, found := strings.Cut(rest, " -->")
		if !found {
			return "", fmt.Errorf("the marker %q… does not end", opening)
		}
		old, rest, found := strings.Cut(rest, closing)
		if !found {
			return "", fmt.Errorf("what begins with %s%s --> has no %s", opening, name, closing)
		}
		content, err := block(r, name)
		if err != nil {
			return "", err
		}
		if content == "" {
			content = old
		} else {
			content = "\n" + content
		}
		b.WriteString(opening + name + " -->" + content + closing)
		page = rest
	}
}

// block returns the content for a name; "" when it was not measured.
func block(r *bench.Report, name string) (string, error) {
	switch name {
	case "conditions":
		return Conditions(r), nil
	case "figures":
		if len(r.Figures) == 0 {
			return "", nil
		}
		return Figures(r), nil
	case "supported":
		return Supported(r), nil
	}
	named := func(s bench.Scenario) bool { return s.Name == name }
	if i := slices.IndexFunc(r.Scenarios, named); i >= 0 {
		return Table(r, r.Scenarios[i]), nil
	}
	if slices.ContainsFunc(bench.Scenarios(), named) {
		return "", nil
	}
	return "", fmt.Errorf("nothing is named %q", name)
}
