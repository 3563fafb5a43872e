"""The lab: a page in the browser where training runs answer a slider.

``attnscope lab`` starts it, and so does :func:`attnscope.lab.server.serve`. Nothing heavy is
imported here.
"""
