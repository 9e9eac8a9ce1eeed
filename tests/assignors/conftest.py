from tests.lab.java.conftest import java

__all__ = ["java"]
