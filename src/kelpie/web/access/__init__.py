"""Who may use the pages: passwords, a proxy's header, sessions, and guards for forms."""
