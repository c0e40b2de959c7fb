"""Archival: completed instants leave the active timeline for the archive (Hudi ``HoodieTimelineArchiver``)."""
