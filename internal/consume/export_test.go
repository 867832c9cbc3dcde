package consume

// Lanes is how many lanes the scheduler remembers.
func (c *Consumer) Lanes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sched.lanes)
}
