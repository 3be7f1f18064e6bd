package bench

// Column says how a value is shown.
type Column struct {
	Name   string
	Title  string
	Format string // of fmt, for a float64
}

// The names of columns.
const (
	opsPerSecond   = "ops_per_second"
	p50            = "p50_us"
	p99            = "p99_us"
	longest        = "longest_us"
	operations     = "operations"
	commands       = "commands_per_op"
	serverCommands = "server_commands_per_op"
	clientCPU      = "client_cpu_us_per_op"
	serverCPU      = "server_cpu_us_per_op"
	allocations    = "allocations_per_op"
	jain           = "jain"
	inversions     = "order_inversions_per_op"
	violations     = "violations"
	stalled        = "stalled"
	idle           = "idle_p50_us"
	roundTrip      = "round_trip_us"
	held           = "held_mean_us"
	drained        = "drained_ms"
	drainRatio     = "drained_per_hold"
	waitRatio      = "longest_per_line"
	overlap        = "overlap_ms"
	takeover       = "takeover_ms"
	bytesPerKey    = "bytes_per_key"
	bytesPerWaiter = "bytes_per_waiter"
	waitCommands   = "commands_per_waiter_second"
	supported      = "supported_per_second"
	usedMemory     = "used_memory_mb"
)

// Columns describes the columns that tables show.
func Columns() []Column {
	return []Column{
		{opsPerSecond, "ops/s", "%.0f"},
		{p50, "p50 µs", "%.0f"},
		{p99, "p99 µs", "%.0f"},
		{longest, "longest µs", "%.0f"},
		{operations, "ops", "%.0f"},
		{commands, "commands/op", "%.2f"},
		{serverCommands, "inner ones too", "%.2f"},
		{clientCPU, "client CPU µs/op", "%.1f"},
		{serverCPU, "Redis CPU µs/op", "%.1f"},
		{allocations, "allocs/op", "%.1f"},
		{jain, "Jain", "%.3f"},
		{inversions, "inversions/op", "%.3f"},
		{violations, "violations", "%.0f"},
		{stalled, "stalled", "%.0f"},
		{idle, "idle p50 µs", "%.0f"},
		{roundTrip, "round trip µs", "%.0f"},
		{held, "held µs", "%.0f"},
		{drained, "drained ms", "%.0f"},
		{drainRatio, "drained / Σ holds", "%.2f"},
		{waitRatio, "longest / line", "%.2f"},
		{overlap, "two believe it, ms", "%.0f"},
		{takeover, "taken over after ms", "%.0f"},
		{bytesPerKey, "bytes/key", "%.0f"},
		{bytesPerWaiter, "bytes/waiter", "%.0f"},
		{waitCommands, "commands/s per waiter", "%.2f"},
		{supported, "ops/s one core of Redis supports", "%.0f"},
		{usedMemory, "Redis MB", "%.1f"},
	}
}
