// Package dedupe is Interlock's engine.
package dedupe
