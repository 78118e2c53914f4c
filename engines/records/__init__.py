"""What this machine keeps of each job: who ran it, how it ended, its events, and the end of its output."""
